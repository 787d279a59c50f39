#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""Packets that leave a worker's kernel together (UDP segmentation offload), and an aggregator behind
a veth pair that reads raw frames: some paths cut them up before they come to it, others do not."""

import harness
from harness import GRADIENT_LENGTH, GRADIENTS, wait_until

ON, NOT_CARRIED, OFF = "on", "not carried by the path", "off"


class Segmentation(harness.LabTest):
    shards = 2

    def cut_up(self, done=True):
        """Whether packets leave the switch towards the aggregator no longer than its MTU, as they
        would through a NIC."""
        port = self.lab.aggregators[0].host.port
        self.lab.run_in_switch("ip", "link", "set", port, "gso_max_segs", "1" if done else "65535")

    def tearDown(self):
        self.cut_up(False)

    def gradients(self, repeat=3, **options):
        """Reports of right all-reduces of the real gradients."""
        reports = self.lab.all_reduce(4, input=lambda rank: GRADIENTS[rank], repeat=repeat,
                                      check_inputs=lambda rank: GRADIENTS, **options)
        self.assertEqual(len({report["checksum"] for report in reports}), 1)
        for report in reports:
            self.assertEqual(report["checked"], repeat)
            self.assertEqual(report["send_failures"], 0)
        return reports

    def test_is_used_where_the_path_cuts_packets_up(self):
        self.cut_up()
        for report in self.gradients():
            self.assertEqual(report["gso"], ON)
            self.assertGreater(report["gso_packets"], 0.8 * report["data_packets"])
        self.assertNotIn("drop_ip_length", self.lab.aggregators[0].stop())

    def test_is_not_used_where_they_would_reach_the_aggregator_whole(self):
        aggregator = self.lab.aggregators[0]
        aggregator.stop()
        aggregator.start(self.shards)
        reports = self.gradients()
        for report in reports:
            self.assertIn(report["gso"], (NOT_CARRIED, "probing"))
            self.assertLessEqual(report["gso_packets"], 6)  # the probes
        self.assertLessEqual(aggregator.stop()["drop_ip_length"], 4 * 3)

    def test_is_not_used_where_it_is_turned_off(self):
        self.cut_up()
        for report in self.gradients(no_gso=True):
            self.assertEqual(report["gso"], OFF)
            self.assertEqual(report["gso_packets"], 0)

    def test_ranks_may_differ_and_get_the_same_bits(self):
        self.cut_up()
        reports = self.gradients(no_gso=lambda rank: rank % 2 == 1 or None)
        self.assertEqual([report["gso"] for report in reports], [ON, OFF, ON, OFF])

    def test_ends_without_harm_when_the_path_stops_to_cut_packets_up(self):
        self.cut_up()
        ranks = self.lab.start_ranks(4, count=GRADIENT_LENGTH, repeat=60,
                                     check=lambda rank: rank == 0 or None)
        before = self.lab.workers[0].sent_packets()
        wait_until(lambda: self.lab.workers[0].sent_packets() > before + 100, 30,
                   "rank 0 to be at work", ranks[0].process)
        self.cut_up(False)
        reports = [rank.done(60) for rank in ranks]
        self.assertEqual(reports[0]["checked"], 60)
        self.assertEqual(len({report["checksum"] for report in reports}), 1)
        for report in reports:
            self.assertEqual(report["gso"], NOT_CARRIED)


class SegmentationOfJumboFrames(Segmentation):
    mtu = 9000


if __name__ == "__main__":
    harness.main()
