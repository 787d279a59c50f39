#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

# exported_symbols_test.sh LIBRARY HEADER: the library exports the functions that the header
# declares, and nothing else.
set -eu

declared=$(tr '\n' ' ' < "$2" | grep -o 'NATAGG_API [^(]*(' | grep -o 'natagg_[a-z_]*(' |
  tr -d '(' | sort -u)
exported=$(nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort)

if [ "$declared" != "$exported" ]; then
  echo "declared in $2:" $declared
  echo "exported by $1:" $exported
  exit 1
fi
echo "$(echo "$exported" | wc -l) functions"
