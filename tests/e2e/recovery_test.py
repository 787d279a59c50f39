#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""Aggregators die, restart and stand still in the middle of a job, and cables are pulled: the same
workers go on, and get the bits of an undisturbed run."""

import signal
import time

import harness
from harness import (GRADIENT_LENGTH, RANK_LOST, REDUCED, REFUSED, make_key_directory, wait_until,
                     write_key)

WORLD = 3
MANY = {"count": GRADIENT_LENGTH, "repeat": 50 if REDUCED else 200, "seed": 7,
        "in_place": True, "operation_timeout": 60_000}
LIMIT = 60

# What a move may cost in all, in seconds, and what a loaded machine may add to it.
MOVE = 2
SLACK = 20 if REDUCED else 1

# Shorter than the member time-out.
PAUSE = 0.7


class Disturbed(harness.LabTest):
    shards = 2
    workers = 4
    job = MANY
    undisturbed = None  # checksum, and how long it took in seconds

    def run_undisturbed(self):
        if self.undisturbed is None:
            begin = time.monotonic()
            reports = self.lab.all_reduce(WORLD, **self.job)
            self.assertEqual(len({report["checksum"] for report in reports}), 1)
            type(self).undisturbed = reports[0]["checksum"], time.monotonic() - begin
        return self.undisturbed

    def start_in_the_middle(self):
        before = [host.sent_packets() for host in self.lab.workers]
        ranks = self.lab.start_ranks(WORLD, **self.job)
        wait_until(lambda: all(host.sent_packets() > before[i] + 3000
                               for i, host in enumerate(self.lab.workers[:WORLD])),
                   30, "all ranks to be at work", *(rank.process for rank in ranks))
        for rank in ranks:
            self.assertTrue(rank.process.running(), "the job is over before the fault")
        return ranks

    def assert_same_bits(self, ranks, checksum):
        for rank in ranks:
            self.assertEqual(rank.done(LIMIT)["checksum"], checksum)


class Recovery(Disturbed):
    def test_a_restarted_aggregator_is_joined_again_in_the_middle_with_the_same_bits(self):
        checksum, _ = self.run_undisturbed()
        ranks = self.start_in_the_middle()
        self.lab.aggregators[0].kill()
        self.lab.aggregators[0].start(self.shards)
        self.assert_same_bits(ranks, checksum)
        self.assertEqual(self.lab.aggregators[0].stop()["resumed_sessions"], self.shards)

    def test_an_aggregator_that_stood_still_goes_on(self):
        checksum, _ = self.run_undisturbed()
        ranks = self.start_in_the_middle()
        self.lab.aggregators[0].process.kill(signal.SIGSTOP)
        time.sleep(3 * PAUSE)
        self.lab.aggregators[0].process.kill(signal.SIGCONT)
        self.assert_same_bits(ranks, checksum)

    def test_a_worker_that_stood_still_goes_on(self):
        checksum, _ = self.run_undisturbed()
        ranks = self.start_in_the_middle()
        ranks[1].process.kill(signal.SIGSTOP)
        time.sleep(PAUSE)
        ranks[1].process.kill(signal.SIGCONT)
        self.assert_same_bits(ranks, checksum)

    def test_a_cable_that_was_pulled_and_is_back_costs_nothing_but_time(self):
        checksum, _ = self.run_undisturbed()
        ranks = self.start_in_the_middle()
        for port in (self.lab.workers[1].port, self.lab.aggregators[0].host.port):
            self.lab.run_in_switch("ip", "link", "set", port, "down")
            time.sleep(PAUSE)
            self.lab.run_in_switch("ip", "link", "set", port, "up")
            time.sleep(PAUSE)
        self.assert_same_bits(ranks, checksum)

    def test_a_job_that_loses_a_worker_does_not_disturb_another(self):
        checksum, _ = self.run_undisturbed()
        other = [self.lab.start_rank(rank, 2, host=self.lab.workers[2 + rank], job=5,
                                     count=GRADIENT_LENGTH, repeat=1_000_000)
                 for rank in range(2)]
        ranks = self.start_in_the_middle()
        other[1].die()
        _, report = other[0].ended(MOVE + SLACK)
        self.assertEqual((report["status"], report["rank_at_fault"]), (RANK_LOST, 1), report)
        self.assert_same_bits(ranks, checksum)

    def test_a_job_is_replaced_by_one_of_another_size(self):
        for rank in self.start_in_the_middle():
            rank.die()
        for world in (4, 1, 2):
            reports = self.lab.all_reduce(world, count=5000, check=True)
            self.assertEqual(len({report["checksum"] for report in reports}), 1)


class Failover(Disturbed):
    aggregators = 2

    def test_the_chunks_of_a_dead_aggregator_move_to_the_living_with_the_same_bits(self):
        checksum, undisturbed = self.run_undisturbed()
        for victim, survivor in ((0, 1), (1, 0)):
            ranks = self.start_in_the_middle()
            self.lab.aggregators[victim].kill()
            since = time.monotonic()
            self.assert_same_bits(ranks, checksum)
            self.assertLess(time.monotonic() - since, undisturbed + MOVE + SLACK)
            self.assertGreaterEqual(self.lab.aggregators[survivor].stop()["resumed_sessions"],
                                    self.shards)
            self.lab.aggregators[survivor].start(self.shards)
            self.lab.aggregators[victim].start(self.shards)

    def test_a_rank_that_loses_its_way_to_one_aggregator_pulls_the_others_along(self):
        checksum, _ = self.run_undisturbed()
        ranks = self.start_in_the_middle()
        host, lost = self.lab.workers[1], self.lab.aggregators[0].address
        status, text = host.run("ip", "route", "add", "blackhole", f"{lost}/32")
        self.assertEqual(status, 0, text)
        try:
            self.assert_same_bits(ranks, checksum)
        finally:
            host.run("ip", "route", "del", "blackhole", f"{lost}/32")


class FailoverOfIoThreads(Failover):
    """Ranks with one, two and three threads, of which some never spoke to the aggregator that dies."""

    job = {**MANY, "io_threads": lambda rank: 1 + rank}


class Keyed(Disturbed):
    """A job that has a key: it outlives its aggregators, and who has another key stays out."""

    aggregators = 2

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        directory, keys = make_key_directory(cls.lab, 7)
        cls.wrong_key = write_key(cls.lab.scratch / "wrong.key")
        cls.options = {"key_directory": directory}
        cls.job = {**MANY, "repeat": 50 if REDUCED else 100, "job": 7, "key_file": keys[7],
                   "io_threads": lambda rank: 1 + rank % 2}

    def assert_wrong_key_is_refused(self):
        rank = self.lab.start_rank(0, 1, job=7, key_file=self.wrong_key, count=10)
        status, report = rank.ended(20)
        self.assertNotEqual(status, 0)
        self.assertEqual(report["status"], REFUSED, report)
        self.assertRegex(report["error"], "key of job 7 refused by aggregator")

    def assert_resumed(self, *aggregators):
        """The places of a dead aggregator's shards; and nothing had been forged or altered."""
        counters = [aggregator.stop() for aggregator in aggregators]
        resumed = sum(each.get("resumed_sessions", 0) for each in counters)
        self.assertGreaterEqual(resumed, self.shards, counters)
        self.assertGreater(sum(each.get("wrong_key", 0) for each in counters), 0, counters)
        self.assertEqual(sum(each.get("bad_mac", 0) for each in counters), 0, counters)

    def test_a_keyed_job_outlives_the_restart_of_an_aggregator_with_the_same_bits(self):
        checksum, _ = self.run_undisturbed()
        ranks = self.start_in_the_middle()
        self.lab.aggregators[0].kill()
        self.lab.aggregators[0].start(self.shards, **self.options)
        self.assert_same_bits(ranks, checksum)
        self.assert_wrong_key_is_refused()
        self.assert_resumed(*self.lab.aggregators)  # where it starts slowly, by the other one

    def test_a_keyed_job_outlives_the_death_of_one_of_two_aggregators_with_the_same_bits(self):
        checksum, _ = self.run_undisturbed()
        ranks = self.start_in_the_middle()
        self.lab.aggregators[1].kill()
        self.assert_same_bits(ranks, checksum)
        self.assert_wrong_key_is_refused()
        self.assert_resumed(self.lab.aggregators[0])


if __name__ == "__main__":
    harness.main()
