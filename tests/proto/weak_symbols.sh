#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Usage: weak_symbols.sh NM LIBRARY...
# A function that is weak in an object compiled for AVX could be the copy that the linker keeps
# for the whole program, and crash CPUs without. Fails naming any such function.
nm=$1
shift
found=$("$nm" --demangle --defined-only "$@" | grep -E '^[0-9a-f]+ [WwVvu] ')
if [ -n "$found" ]; then
  echo "weak symbols in instruction-set objects:"
  echo "$found"
  exit 1
fi
"$nm" --demangle --defined-only "$@" | grep -q 'natagg::k.*Kernels' || {
  echo "no kernel table found: is this the right library?"
  exit 1
}
