#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""The lab that the other tests and ./quickstart use: it leaves nothing, whatever happens to it, and
does not mind another one."""

import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import harness
from harness import BUILD, ROOT, wait_until

# A lab at work, which says so and then waits for its end.
HOLD = f"""
import sys, time
sys.path.insert(0, {str(ROOT / "scripts")!r})
import isolation, natagg_lab
scratch = sys.argv[1]
isolation.isolate(scratch)
with natagg_lab.Lab({str(BUILD)!r}, scratch, aggregators=1, workers=2) as lab:
    lab.aggregators[0].start(2)
    lab.start_ranks(2, count=200_000, repeat=1_000_000)
    print("at work", flush=True)
    time.sleep(600)
"""


def processes_with(marker):
    """Those that have `marker` in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue
        if os.fsencode(marker) in environment:
            found.append(int(folder.name))
    return found


class Lab(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory(dir=harness.SCRATCH))
        self.scratch = Path(folder) / "scratch"

    def start(self):
        holder = subprocess.Popen([sys.executable, "-B", "-c", HOLD, self.scratch],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, "NATAGG_TEST_MARKER": str(self.scratch)})
        self.addCleanup(holder.wait, 10)
        self.addCleanup(holder.stdout.close)
        self.addCleanup(holder.kill)
        self.assertEqual(holder.stdout.readline(), "at work\n")
        # At least the lab's own two, a daemon and two workers.
        wait_until(lambda: len(processes_with(self.scratch)) >= 5, 10, "all processes to start")
        return holder

    def assert_nothing_is_left(self):
        wait_until(lambda: not processes_with(self.scratch), 10, "all processes to end")
        self.assertEqual(list(self.scratch.iterdir()), [])

    def test_leaves_nothing_when_it_is_killed(self):
        holder = self.start()
        holder.kill()
        holder.wait(10)
        self.assert_nothing_is_left()

    def test_leaves_nothing_when_it_is_told_to_end(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number):
                holder = self.start()
                holder.send_signal(number)
                self.assertEqual(holder.wait(10), 128 + number)
                self.assert_nothing_is_left()

    def test_does_not_mind_another_one(self):
        self.start()
        for _ in range(2):
            self.show_demonstration()

    def show_demonstration(self):
        """./quickstart without installing and building."""
        done = subprocess.run([sys.executable, "-B", ROOT / "scripts" / "demo.py", BUILD],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("NO", done.stdout.split())
        self.assertLess(len(done.stdout.splitlines()), 40)
        self.assertTrue(done.stdout.isascii())
        self.assertEqual(os.listdir(harness.SCRATCH), [self.scratch.parent.name])


if __name__ == "__main__":
    harness.main()
