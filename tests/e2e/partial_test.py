#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""A worker stands still in the middle of a job that does not wait for stragglers, or is killed: the
others go on, and it gets the same bits when it is back."""

import signal
import time

import harness
from harness import REDUCED, wait_until

WORLD = 3
DEADLINE = 40  # ms
JOB = {"count": 5000, "repeat": 600 if REDUCED else 2000, "seed": 7, "straggler_deadline": DEADLINE,
       "operation_timeout": 60_000}
LIMIT = 60

# Shorter than the member time-out, and long enough for several operations without the worker.
PAUSE = 0.8


class Stragglers(harness.LabTest):
    shards = 2
    workers = 3

    def test_the_others_go_on_without_a_worker_that_stands_still_and_all_get_the_same_bits(self):
        before = [host.sent_packets() for host in self.lab.workers]
        ranks = self.lab.start_ranks(WORLD, **JOB)
        wait_until(lambda: all(host.sent_packets() > before[i] + 400
                               for i, host in enumerate(self.lab.workers)),
                   30, "all ranks to be at work", *(rank.process for rank in ranks))
        ranks[2].process.kill(signal.SIGSTOP)
        try:
            self.assertTrue(ranks[0].process.running(), "the job is over before the fault")
            time.sleep(PAUSE / 4)
            sent = self.lab.workers[0].sent_packets()
            time.sleep(PAUSE * 3 / 4)
            # Two operations at least, of 4 packets each; repetitions and heartbeats are fewer.
            self.assertGreater(self.lab.workers[0].sent_packets(), sent + 16)
        finally:
            ranks[2].process.kill(signal.SIGCONT)
        reports = [rank.done(LIMIT) for rank in ranks]
        self.assertEqual(len({report["checksum"] for report in reports}), 1, reports)
        for report in reports:
            self.assertEqual(report["operations"], JOB["repeat"])
            self.assertGreater(report["partial_chunks"], 2)
            self.assertLess(report["partial_chunks"], report["chunks"])
            self.assertIn(" 2", report["missing_ranks"])
            self.assertEqual(report["least_ranks"], 2)
            self.assertGreater(report["variance_inflation"], 1)
        self.assertEqual(len({report["partial_chunks"] for report in reports}), 1)
        counters = self.lab.aggregators[0].stop()
        self.assertEqual(counters["partial_results"], reports[0]["partial_chunks"])
        self.assertGreater(counters["late_contributions"], 0)

    def test_the_others_go_on_without_a_worker_that_is_killed(self):
        before = [host.sent_packets() for host in self.lab.workers]
        ranks = self.lab.start_ranks(WORLD, **JOB)
        wait_until(lambda: all(host.sent_packets() > before[i] + 400
                               for i, host in enumerate(self.lab.workers)),
                   30, "all ranks to be at work", *(rank.process for rank in ranks))
        ranks[2].process.kill(signal.SIGKILL)
        self.assertTrue(ranks[0].process.running(), "the job is over before the fault")
        reports = [rank.done(LIMIT) for rank in ranks[:2]]
        self.assertEqual(len({report["checksum"] for report in reports}), 1, reports)
        for report in reports:
            self.assertEqual(report["operations"], JOB["repeat"])
            self.assertEqual(report["missing_ranks"], " 2")
            self.assertEqual(report["least_ranks"], 2)
        counters = self.lab.aggregators[0].stop()
        # Each shard finds it out for itself.
        self.assertEqual(counters["silent_members"], self.shards)
        self.assertEqual(counters["partial_results"], reports[0]["partial_chunks"])

    def test_nobody_is_late_in_a_job_that_runs_freely_and_its_results_are_whole(self):
        reports = self.lab.all_reduce(WORLD, count=5000, repeat=20, check=True,
                                      straggler_deadline=10_000)
        for report in reports:
            self.assertEqual((report["partial_chunks"], report["checked"]), (0, 20))


if __name__ == "__main__":
    harness.main()
