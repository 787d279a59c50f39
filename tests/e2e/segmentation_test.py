#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""Packets that leave a worker's kernel together (UDP segmentation offload), and an aggregator behind
a veth pair that reads raw frames: some paths cut them up before they come to it, others do not. And
packets that a worker's kernel has put together as they arrived (UDP GRO)."""

import array
import fcntl
import socket
import struct
import subprocess

import harness
from harness import GRADIENT_LENGTH, GRADIENTS, wait_until

ON, NOT_CARRIED, OFF = "on", "not carried by the path", "off"

# linux/sockios.h, linux/ethtool.h
SIOCETHTOOL = 0x8946
ETHTOOL_STSO = 0x1F
ETHTOOL_SGRO = 0x2C


class OffloadTest(harness.LabTest):
    shards = 2

    def gradients(self, repeat=3, **options):
        """Reports of right all-reduces of the real gradients."""
        reports = self.lab.all_reduce(4, input=lambda rank: GRADIENTS[rank], repeat=repeat,
                                      check_inputs=lambda rank: GRADIENTS, **options)
        self.assertEqual(len({report["checksum"] for report in reports}), 1)
        for report in reports:
            self.assertEqual(report["checked"], repeat)
            self.assertEqual(report["send_failures"], 0)
        return reports


class Segmentation(OffloadTest):
    def cut_up(self, done=True):
        self.lab.cut_up(self.lab.aggregators[0], done)

    def setUp(self):
        super().setUp()
        self.cut_up()

    def test_is_used_where_the_path_cuts_packets_up(self):
        for report in self.gradients():
            self.assertEqual(report["gso"], ON)
            self.assertGreater(report["gso_packets"], 0.8 * report["data_packets"])
        self.assertNotIn("drop_ip_length", self.lab.aggregators[0].stop())

    def test_is_not_used_where_they_would_reach_the_aggregator_whole(self):
        self.cut_up(False)
        aggregator = self.lab.aggregators[0]
        aggregator.stop()
        aggregator.start(self.shards)
        reports = self.gradients()
        for report in reports:
            self.assertIn(report["gso"], (NOT_CARRIED, "probing"))
            self.assertLessEqual(report["gso_packets"], 6)  # the probes
        self.assertLessEqual(aggregator.stop()["drop_ip_length"], 4 * 3)

    def test_is_not_used_where_it_is_turned_off(self):
        for report in self.gradients(no_gso=True):
            self.assertEqual(report["gso"], OFF)
            self.assertEqual(report["gso_packets"], 0)

    def test_ranks_may_differ_and_get_the_same_bits(self):
        reports = self.gradients(no_gso=lambda rank: rank % 2 == 1 or None)
        self.assertEqual([report["gso"] for report in reports], [ON, OFF, ON, OFF])

    def test_ends_without_harm_when_the_path_stops_to_cut_packets_up(self):
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


class Merging(OffloadTest):
    """The workers' interfaces put together what comes within 100 us, as a NIC's interrupt does."""

    FLUSH_NS = 100_000

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        mount = cls.lab.scratch / "sys"
        mount.mkdir()
        for worker in cls.lab.workers:
            # veth takes part only where the other end offers no segmentation itself.
            cls.set_offload(cls.lab.switch, worker.port, ETHTOOL_STSO, 0)
            cls.set_offload(worker.namespace, "eth0", ETHTOOL_SGRO, 1)
            with worker.namespace.entered():
                subprocess.run(["mount", "-t", "sysfs", "none", mount], check=True)
                timeout = mount / "class" / "net" / "eth0" / "gro_flush_timeout"
                timeout.write_text(str(cls.FLUSH_NS), encoding="ascii")
                subprocess.run(["umount", mount], check=True)

    @staticmethod
    def set_offload(namespace, device, command, value):
        argument = array.array("B", struct.pack("II", command, value))
        request = struct.pack("16sP", device.encode(), argument.buffer_info()[0])
        with namespace.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            fcntl.ioctl(control, SIOCETHTOOL, request)

    def test_results_by_multicast_may_come_together(self):
        for report in self.gradients():
            self.assertGreater(report["gro_packets"], 0)
            self.assertGreater(report["multicast_results"], 0.9 * report["result_packets"])

    def test_results_by_unicast_may_come_together(self):
        for report in self.gradients(no_multicast=True):
            self.assertGreater(report["gro_packets"], 0)

    def test_a_rank_that_takes_them_singly_gets_the_same_bits(self):
        reports = self.gradients(no_gso=lambda rank: rank == 2 or None)
        self.assertEqual(reports[2]["gro_packets"], 0)
        self.assertGreater(reports[1]["gro_packets"], 0)


class MergingOfJumboFrames(Merging):
    mtu = 9000


if __name__ == "__main__":
    harness.main()
