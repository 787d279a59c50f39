#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""Builds natagg for release and with sanitizers, runs the tests of each build, and counts."""

import argparse
import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# With enough optimization for the tests' deadlines, and little enough for readable reports, which
# need no more than line numbers: -g1 compiles faster.
SANITIZED = ["-Doptimization=1", "-Ddebug=false", "-Dcpp_args=-g1", "-Db_ndebug=false",
             "-Db_lundef=false"]


@dataclasses.dataclass
class Run:
    name: str
    directory: str
    suites: list
    options: list = dataclasses.field(default_factory=list)
    environment: dict = dataclasses.field(default_factory=dict)


RUNS = [
    Run("release", "build", ["fast", "lint", "simulation", "simulation-long", "loopback", "dpdk",
                             "memif", "netns", "netns-long"]),
    # Not memif: with AddressSanitizer its two processes exchange nothing, for a reason not found.
    Run("address and undefined", "build-asan", ["fast", "simulation", "loopback", "dpdk", "netns"],
        ["-Db_sanitize=address,undefined", *SANITIZED],
        {"NATAGG_SIM_SEEDS": "400", "NATAGG_E2E": "reduced",
         "ASAN_OPTIONS": "detect_stack_use_after_return=1",
         "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}),
    Run("thread", "build-tsan", ["loopback"],
        ["-Db_sanitize=thread", *SANITIZED], {"TSAN_OPTIONS": "halt_on_error=1"}),
]


@dataclasses.dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __iadd__(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        return self


def number(pattern, text):
    return sum(int(match) for match in re.findall(pattern, text, re.MULTILINE))


def count_cases(test):
    """The cases of one line of meson's log: GoogleTest's, unittest's, or else the program itself."""
    text = test.get("stdout", "") + test.get("stderr", "")
    good = test["result"] in ("OK", "EXPECTEDFAIL")
    if test["result"] == "SKIP":
        return Count(skipped=1)
    gtest = Count(number(r"^\[  PASSED  \] (\d+) test", text),
                  number(r"^\[  FAILED  \] (\d+) test", text),
                  number(r"^\[  SKIPPED \] (\d+) test", text))
    ran = number(r"^Ran (\d+) tests? in", text)
    failed = number(r"^FAILED \(.*failures=(\d+)", text) + number(r"^FAILED \(.*errors=(\d+)", text)
    skipped = number(r"^(?:OK|FAILED) \(.*skipped=(\d+)", text)
    # A subtest counts as a failure of its own, so there may be more of them than tests.
    count = Count(max(ran - failed - skipped, 0), failed, skipped) if ran else gtest
    if count == Count():
        return Count(passed=int(good), failed=int(not good))
    if not good and count.failed == 0:
        count.failed = 1  # it crashed, or took too long
    return count


def run_tests(run, suites):
    suites = [suite for suite in run.suites if not suites or suite in suites]
    if not suites:
        return Count(), True
    print(f"\n=== {run.name}: {', '.join(suites)}", flush=True)
    # With a wrapper, meson adds its name.
    logs = (ROOT / run.directory / "meson-logs").glob
    for log in logs("testlog*.json"):
        log.unlink()
    # build.ninja is the target that is up to date once the directory is set up: meson builds
    # what the chosen suites need.
    setup = [ROOT / "scripts" / "build", run.directory, *run.options, "--", "build.ninja"]
    if subprocess.run(setup, cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode != 0:
        return Count(failed=1), False
    command = ["meson", "test", "-C", run.directory, "--print-errorlogs",
               *(f"--suite={suite}" for suite in suites)]
    if run.options and can_fix_addresses():
        command += ["--wrapper", "setarch --addr-no-randomize"]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, check=False,
                          env={**os.environ, **run.environment})
    total = Count()
    for log in logs("testlog*.json"):
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            total += count_cases(json.loads(line))
    if done.returncode != 0 and total.failed == 0:
        total.failed = 1  # it does not compile
    return total, done.returncode == 0


def can_fix_addresses():
    """GCC 12's sanitizers do not find their way in the most random address spaces."""
    command = ["setarch", "--addr-no-randomize", "true"]
    return shutil.which("setarch") and subprocess.run(
        command, stderr=subprocess.DEVNULL, check=False).returncode == 0


def main():
    every = sorted({suite for run in RUNS for suite in run.suites})
    builds = [run.directory for run in RUNS]
    parser = argparse.ArgumentParser(prog="./test", description=__doc__)
    parser.add_argument("--suite", action="append", choices=every, default=[],
                        help="run this suite only; may be repeated")
    parser.add_argument("--build", action="append", choices=builds, default=[],
                        help="run this build only; may be repeated")
    arguments = parser.parse_args()
    start = time.monotonic()
    total = Count()
    good = True
    for run in RUNS:
        if not arguments.build or run.directory in arguments.build:
            count, passed = run_tests(run, arguments.suite)
            total += count
            good = good and passed
    minutes = (time.monotonic() - start) / 60
    print(f"\n{minutes:.1f} minutes; {total.skipped} skipped")
    print(f"{total.passed} passed, {total.failed} failed")
    sys.exit(0 if good and total.passed > 0 and total.failed == 0 else 1)


if __name__ == "__main__":
    main()
