#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""Workers and aggregators die in the middle, or disagree: nobody waits for ever, everybody hears
why, and the job can form again at once."""

import signal
import time

import harness
from harness import (AGGREGATOR_LOST, GRADIENT_LENGTH, MISMATCH, RANK_LOST, REDUCED, REFUSED,
                     TIMED_OUT, wait_until)

# Longer than any test lasts, so that nothing below is their doing.
ENDLESS = {"count": GRADIENT_LENGTH, "repeat": 1_000_000, "operation_timeout": 120_000}

# Silence after which a worker, and an aggregator that nothing replaces, is given up, in seconds, and
# what a loaded machine may add to it.
SILENCE = 1.5
AGGREGATOR_SILENCE = 5
SLACK = 10 if REDUCED else 3


class Failures(harness.LabTest):
    shards = 2

    def start_endless(self, world=4):
        """Ranks that are in the middle of their work."""
        ranks = self.lab.start_ranks(world, **ENDLESS)
        before = [host.sent_packets() for host in self.lab.workers]
        wait_until(lambda: all(host.sent_packets() > before[i] + 500
                               for i, host in enumerate(self.lab.workers[:world])),
                   30, "all ranks to be at work", *(rank.process for rank in ranks))
        return ranks

    def assert_works(self, world=4):
        reports = self.lab.all_reduce(world, count=5000, check=True)
        self.assertEqual(len({report["checksum"] for report in reports}), 1)

    def assert_all_fail(self, ranks, status, since, silence=SILENCE):
        for rank in ranks:
            code, report = rank.ended(silence + SLACK)
            self.assertEqual((code, report["status"]), (1, status), report)
            yield report
        self.assertLess(time.monotonic() - since, silence + SLACK)

    def test_a_killed_worker_is_named_to_the_others_and_a_new_set_joins_at_once(self):
        ranks = self.start_endless()
        ranks[2].die()
        since = time.monotonic()
        others = ranks[:2] + ranks[3:]
        for report in self.assert_all_fail(others, RANK_LOST, since):
            self.assertEqual(report["rank_at_fault"], 2)
            self.assertIn("rank 2", report["error"])
            self.assertGreater(report["operations"], 0)
        self.assert_works()
        self.assertGreater(self.lab.aggregators[0].stop()["silent_members"], 0)

    def test_a_new_set_need_not_wait_for_the_end_of_one_that_was_killed(self):
        for rank in self.start_endless():
            rank.die()
        self.assert_works()

    def test_a_worker_told_to_end_is_named_to_the_others(self):
        ranks = self.start_endless()
        ranks[1].process.kill(signal.SIGTERM)
        since = time.monotonic()
        for report in self.assert_all_fail([ranks[0]] + ranks[2:], RANK_LOST, since):
            self.assertEqual(report["rank_at_fault"], 1)
            self.assertIn("left", report["error"])
        self.assertEqual(ranks[1].ended(SLACK)[0], 1)

    def test_workers_report_a_killed_aggregator_which_takes_jobs_again_when_it_is_back(self):
        ranks = self.start_endless()
        self.lab.aggregators[0].kill()
        since = time.monotonic()
        for report in self.assert_all_fail(ranks, AGGREGATOR_LOST, since, AGGREGATOR_SILENCE):
            self.assertIn(self.lab.aggregators[0].address, report["error"])
        self.lab.aggregators[0].start(self.shards)
        self.assert_works()

    def test_an_aggregator_told_to_end_in_the_middle_ends_in_order(self):
        ranks = self.start_endless()
        self.lab.aggregators[0].stop()
        list(self.assert_all_fail(ranks, AGGREGATOR_LOST, time.monotonic(), AGGREGATOR_SILENCE))

    def test_a_rank_that_never_comes_is_named(self):
        ranks = [self.lab.start_rank(rank, 4, count=1, connect_timeout=3000) for rank in range(3)]
        for rank in ranks:
            status, report = rank.ended(3 + SLACK)
            self.assertEqual((status, report["status"]), (1, TIMED_OUT))
            self.assertIn("rank 3", report["error"])

    def test_nothing_at_the_aggregators_address_is_reported(self):
        status, report = self.lab.start_rank(
            0, 1, count=1, connect_timeout=500, aggregators="10.78.0.250").ended(1 + SLACK)
        self.assertEqual((status, report["status"]), (1, TIMED_OUT))
        self.assertIn("10.78.0.250", report["error"])

    def test_different_values_a_packet_are_refused_with_both_numbers(self):
        first = self.lab.start_rank(0, 2, count=1, values=512, connect_timeout=3000)
        second = self.lab.start_rank(1, 2, count=1, values=1024, connect_timeout=3000)
        reports = [rank.ended(3 + SLACK)[1] for rank in (first, second)]
        refused = [report for report in reports if report["status"] == REFUSED]
        self.assertGreater(len(refused), 0, reports)
        for report in refused:
            self.assertIn("512", report["error"])
            self.assertIn("1024", report["error"])

    def test_different_seeds_are_refused(self):
        ranks = self.lab.start_ranks(2, count=1, seed=lambda rank: rank, connect_timeout=3000)
        reports = [rank.ended(3 + SLACK)[1] for rank in ranks]
        self.assertIn(REFUSED, [report["status"] for report in reports])

    def test_different_lengths_fail_on_all_ranks_with_both_lengths(self):
        ranks = self.lab.start_ranks(3, count=lambda rank: 4000 if rank == 1 else 5000)
        for rank in ranks:
            status, report = rank.ended(SILENCE + SLACK)
            self.assertEqual((status, report["status"]), (1, MISMATCH), report)
            self.assertIn("4000", report["error"])
            self.assertIn("5000", report["error"])
        self.assert_works()


if __name__ == "__main__":
    harness.main()
