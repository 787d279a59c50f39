#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""Jobs with keys: only who has the job's key gets in, and the others are told why not."""

import re

import harness
from harness import GRADIENTS, REFUSED, make_key_directory, write_key


class Authentication(harness.LabTest):
    workers = 4
    shards = 2

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        directory, cls.keys = make_key_directory(cls.lab, 7, 8)
        cls.options = {"key_directory": directory}

    def refused(self, **options):
        """The error of one rank that must be refused."""
        status, report = self.lab.start_rank(0, 2, count=10, **options).ended(20)
        self.assertNotEqual(status, 0)
        self.assertEqual(report["status"], REFUSED, report)
        return report["error"]

    def test_two_jobs_with_keys_of_their_own_share_an_aggregator(self):
        jobs = {job: self.lab.start_ranks(4, job=job, key_file=self.keys[job], repeat=5,
                                          input=lambda rank: GRADIENTS[rank],
                                          check_inputs=lambda rank: GRADIENTS)
                for job in self.keys}
        for ranks in jobs.values():
            reports = [rank.done(60) for rank in ranks]
            self.assertEqual(len({report["checksum"] for report in reports}), 1)
            for report in reports:
                self.assertEqual(report["checked"], 5)
                self.assertEqual(report["rejected_packets"], 0)
                self.assertGreater(report["multicast_results"], 0.9 * report["result_packets"])
        counters = self.lab.aggregators[0].stop()
        self.assertGreater(counters["contributions"], 5000)
        for name in ("unauthenticated", "wrong_key", "bad_mac", "replayed"):
            self.assertEqual(counters.get(name, 0), 0, counters)

    def test_losses_are_recovered_without_a_replay(self):
        reports = self.lab.all_reduce(4, job=7, key_file=self.keys[7], count=100_000, check=True,
                                      transmit_loss=0.02, receive_loss=0.02)
        self.assertEqual(len({report["checksum"] for report in reports}), 1)
        self.assertGreater(sum(report["retransmissions"] for report in reports), 0)
        counters = self.lab.aggregators[0].stop()
        self.assertEqual(counters.get("bad_mac", 0), 0, counters)

    def test_who_lacks_the_key_is_told_why_and_counted(self):
        at = re.escape(self.lab.aggregators[0].address) + ":4790"
        self.assertRegex(self.refused(job=7, key_file=self.keys[8]),
                         f"key of job 7 refused by aggregator {at}: it has another one")
        self.assertRegex(self.refused(job=9, key_file=self.keys[8]),
                         f"key of job 9 refused by aggregator {at}: it has none")
        self.assertRegex(self.refused(job=7), f"job 7 needs a key at aggregator {at}")
        self.assertRegex(self.refused(job=9), f"job 9 needs a key at aggregator {at}")
        counters = self.lab.aggregators[0].stop()
        self.assertGreater(counters["wrong_key"], 0)
        self.assertGreater(counters["unauthenticated"], 0)
        self.assertEqual(counters.get("joins", 0), 0)

    def test_a_key_that_others_can_read_is_refused_at_both_ends(self):
        path = write_key(self.lab.scratch / "open.key", 0o644)
        status, text = self.lab.workers[0].run(
            self.lab.allreduce, "--aggregators", "10.0.0.1", "--count", "1", "--key-file", path)
        self.assertNotEqual(status, 0)
        self.assertIn(f"chmod 600 {path}", text)
        directory = self.lab.scratch / "open"
        directory.mkdir(mode=0o700)
        path = write_key(directory / "7.key", 0o640)
        status, text = self.lab.workers[0].run(
            self.lab.daemon, "--address=10.0.0.1", f"--key_directory={directory}", "--check-config")
        self.assertEqual(status, 2, text)
        self.assertIn(f"chmod 600 {path}", text)


class JobsWithoutKey(Authentication):
    """Beside those that have one, where the operator accepts them."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.options = {**cls.options, "jobs_without_key": "accept"}

    def test_who_lacks_the_key_is_told_why_and_counted(self):
        reports = self.lab.all_reduce(4, job=9, count=5000, check=True)
        self.assertEqual(len({report["checksum"] for report in reports}), 1)
        self.assertRegex(self.refused(job=7), "job 7 needs a key")

    test_two_jobs_with_keys_of_their_own_share_an_aggregator = None
    test_losses_are_recovered_without_a_replay = None
    test_a_key_that_others_can_read_is_refused_at_both_ends = None


if __name__ == "__main__":
    harness.main()
