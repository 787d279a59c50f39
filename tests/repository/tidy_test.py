#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""clang-tidy finds nothing, by the list in .clang-tidy, in proto and in both sans-I/O cores.

Usage: tidy_test.py CLANG_TIDY BUILD_DIRECTORY. Reads the directory's compile_commands.json.
"""

import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = ["proto", "aggregator/core", "worker_lib/core"]

# What no compiler says anything about, and the list must find.
KNOWN_FAULT = "int* f();\nbool g(int* p) { return sizeof(p) == 4 && f() == 0; }\n"


def sources(build):
    """Of the parts, each once; the instruction sets' intrinsics are GCC's own business."""
    found = set()
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        path = (Path(entry["directory"]) / entry["file"]).resolve()
        name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""
        vector = name in ("proto/kernels/avx2.cpp", "proto/kernels/avx512.cpp")
        if any(name.startswith(part + "/") for part in PARTS) and not vector:
            found.add(path)
    return sorted(found)


def tidy(clang_tidy, path, *arguments):
    return subprocess.run(
        [clang_tidy, "--quiet", f"--config-file={ROOT / '.clang-tidy'}", path, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def main():
    clang_tidy, build = sys.argv[1], Path(sys.argv[2])
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as fault:
        fault.write(KNOWN_FAULT)
        fault.flush()
        if tidy(clang_tidy, fault.name, "--", "-std=c++20").returncode == 0:
            sys.exit("clang-tidy does not find a known fault")
    paths = sources(build)
    if len(paths) < 15:
        sys.exit(f"{build}/compile_commands.json has {len(paths)} sources of {', '.join(PARTS)}")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        # Not clang's own warnings: the compiler that builds has its say there.
        results = list(pool.map(
            lambda path: tidy(clang_tidy, path, "-p", build, "--extra-arg=-w"), paths))
    failed = [result for result in results if result.returncode != 0]
    for result in failed:
        print(result.stdout, result.stderr, sep="\n")
    print(f"{len(paths)} files, {len(failed)} with findings")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
