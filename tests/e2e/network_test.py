#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""The aggregator as a host among others: ARP, ping, multicast where switches let it, several
jobs."""

import re
import unittest

import harness
from harness import GRADIENTS, GRADIENT_LENGTH, REDUCED, wait_until


class Network(harness.LabTest):
    shards = 2

    def set_multicast(self, allowed, workers):
        """At the switch: multicast is flooded to these workers' ports, or never reaches them."""
        self.lab.run_in_switch("ip", "link", "set", "switch", "type", "bridge", "mcast_snooping",
                               "0")
        for worker in workers:
            self.lab.run_in_switch("bridge", "link", "set", "dev", worker.port, "mcast_flood",
                                   "on" if allowed else "off")

    def tearDown(self):
        self.set_multicast(True, self.lab.workers)

    def gradients(self, **options):
        """Reports of a right all-reduce of the real gradients."""
        reports = self.lab.all_reduce(4, input=lambda rank: GRADIENTS[rank],
                                      check_inputs=lambda rank: GRADIENTS, **options)
        self.assertEqual(len({report["checksum"] for report in reports}), 1)
        return reports

    def test_a_kernel_neighbour_resolves_the_address_and_pings_it(self):
        worker, aggregator = self.lab.workers[0], self.lab.aggregators[0]
        worker.run("ip", "neighbour", "flush", "all")
        status, text = worker.run("ping", "-c", "3", "-i", "0.01", "-W", "5", aggregator.address)
        self.assertEqual(status, 0, text)
        self.assertIn("3 received", text)
        neighbours = worker.run("ip", "neighbour", "show", aggregator.address)[1]
        self.assertIn(aggregator.host.mac(), neighbours)

    def test_a_large_ping_is_answered_whole(self):
        worker, aggregator = self.lab.workers[0], self.lab.aggregators[0]
        size = str(self.mtu - 28)
        status, text = worker.run("ping", "-M", "do", "-s", size, "-c", "1", "-W", "5",
                                  aggregator.address)
        self.assertEqual(status, 0, text)

    def test_results_come_by_multicast_over_a_switch(self):
        for report in self.gradients():
            self.assertGreater(report["multicast_results"], 0.9 * report["result_packets"])

    def test_results_come_by_multicast_over_a_switch_that_snoops_igmp(self):
        self.lab.run_in_switch("ip", "link", "set", "switch", "type", "bridge",
                               "mcast_snooping", "1", "mcast_querier", "1")
        for report in self.gradients():
            self.assertGreater(report["multicast_results"], 0.9 * report["result_packets"])

    def test_results_come_by_unicast_where_the_switch_blocks_multicast(self):
        self.set_multicast(False, self.lab.workers)
        for report in self.gradients():
            self.assertEqual(report["multicast_results"], 0)

    def test_one_deaf_worker_is_served_too(self):
        self.set_multicast(False, self.lab.workers[2:3])
        reports = self.gradients()
        self.assertEqual(reports[2]["multicast_results"], 0)

    def test_multicast_that_stops_in_the_middle_stops_no_job(self):
        ranks = self.lab.start_ranks(4, count=GRADIENT_LENGTH, repeat=4)
        before = self.lab.workers[0].sent_packets()
        wait_until(lambda: self.lab.workers[0].sent_packets() > before + 40, 30,
                   "rank 0 to be at work", ranks[0].process)
        self.set_multicast(False, self.lab.workers[:1])
        self.assertEqual(len({rank.done(60)["checksum"] for rank in ranks}), 1)

    def test_a_worker_can_decline_multicast(self):
        reports = self.gradients(no_multicast=lambda rank: rank == 1 or None)
        self.assertEqual(reports[1]["multicast_results"], 0)

    def test_two_jobs_at_once_do_not_touch(self):
        jobs = [self.lab.start_ranks(4, job=job, seed=job, repeat=5, data_seed=job,
                                     count=GRADIENT_LENGTH, check=lambda rank: rank == 0 or None)
                for job in (1, 2)]
        checksums = []
        for ranks in jobs:
            reports = [rank.done(60) for rank in ranks]
            self.assertEqual(reports[0]["checked"], 5)
            self.assertEqual(len({report["checksum"] for report in reports}), 1)
            checksums.append(reports[0]["checksum"])
        self.assertNotEqual(*checksums)

    @unittest.skipIf(REDUCED, "sanitized programs are too slow for their time-outs")
    def test_a_clean_path_needs_hardly_any_retransmissions(self):
        """In one of some rounds: on a busy machine, processes may have to wait for a core for
        longer than any sensible time-out."""
        def part():
            reports = self.lab.all_reduce(4, input=lambda rank: GRADIENTS[rank], repeat=30)
            again = sum(report["retransmissions"] for report in reports)
            return again / sum(report["data_packets"] for report in reports)

        self.assertTrue(any(part() < 0.01 for _ in range(10)))

    def test_the_aggregator_leaves_nothing_when_it_is_told_to_end(self):
        aggregator = self.lab.aggregators[0]
        counters = aggregator.stop()
        self.assertEqual(list(self.lab.scratch.glob("*.ready")), [])
        self.assertNotIn("device_rx_no_buffer", counters)
        self.assertRegex(aggregator.process.text(), re.compile(r"stopped$"))


class NetworkOfJumboFrames(Network):
    mtu = 9000


class MulticastOff(harness.LabTest):
    options = {"multicast": "off"}

    def test_sends_every_result_by_unicast(self):
        for report in self.lab.all_reduce(4, count=GRADIENT_LENGTH, check=True):
            self.assertEqual(report["multicast_results"], 0)
            self.assertEqual(report["multicast_groups"], 0)


if __name__ == "__main__":
    harness.main()
