#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""The aggregator on devices of the kernel other than net_af_packet, where this machine has them."""

import ctypes
import os
import platform
import re
import signal
import socket
import struct
import unittest

import harness
from harness import GRADIENT_LENGTH, LabError, wait_until

AF_XDP = 44
XDP_MAX_MTU = 3360


def xdp_obstacle():
    """What keeps this machine or user from AF_XDP, or None."""
    try:
        socket.socket(AF_XDP, socket.SOCK_RAW).close()
    except OSError as error:
        return f"no AF_XDP socket: {error}"
    # BPF_MAP_CREATE of a BPF_MAP_TYPE_XSKMAP, as the driver does for its program
    attributes = struct.pack("=4I", 17, 4, 4, 1)
    number = {"x86_64": 321, "aarch64": 280}[platform.machine()]
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(number, 0, attributes, len(attributes))
    if descriptor < 0:
        return f"no BPF: {os.strerror(ctypes.get_errno())}"
    os.close(descriptor)
    return None


def tap_obstacle():
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as error:
        return f"no tap: {error}"
    return None


class DeviceTest(harness.LabTest):
    driver = ""
    obstacle = staticmethod(lambda: None)

    @classmethod
    def setUpClass(cls):
        reason = cls.obstacle()
        if reason:
            raise unittest.SkipTest(reason)
        super().setUpClass()

    def setUp(self):
        try:
            self.aggregator = self.lab.aggregators[0].start(self.shards, driver=self.driver)
        except LabError as error:
            if "failed to parse device" in str(error):
                self.skipTest(f"DPDK has no driver {self.driver} here")
            raise
        self.addCleanup(self.end)

    def end(self):
        if self.aggregator.process.running():
            self.aggregator.stop()

    def assert_serves(self):
        """Right sums for all, nothing dropped, and answers to ping, also the largest."""
        worker = self.lab.workers[0]
        for size in (56, self.mtu - 28):
            status, text = worker.run("ping", "-M", "do", "-s", str(size), "-c", "1", "-W", "5",
                                      self.aggregator.address)
            self.assertEqual(status, 0, text)
        reports = self.lab.all_reduce(4, count=GRADIENT_LENGTH, repeat=3, check=True)
        self.assertEqual([report["checked"] for report in reports], [3] * 4)
        self.assertEqual(len({report["checksum"] for report in reports}), 1)
        counters = self.aggregator.stop()
        self.assertEqual(counters["rx_echo"], 2)
        chunks = -(-GRADIENT_LENGTH // reports[0]["values_per_packet"])
        self.assertEqual(counters["results"], 3 * chunks)
        dropped = {name for name in counters if re.match("drop_|tx_drop_|device_", name)}
        # Others' frames that a bridge floods, and the answers to the daemon's own ARP.
        self.assertLessEqual(dropped, {"drop_other_mac", "drop_arp_other"})
        self.assertNotIn("not given back", self.aggregator.process.text())
        return reports


class Xdp(DeviceTest):
    driver = "net_af_xdp"
    obstacle = staticmethod(xdp_obstacle)

    def test_serves_workers_and_takes_its_program_away(self):
        host = self.aggregator.host
        self.assertIn("xdp", host.run("ip", "link", "show", "eth0")[1])
        self.assert_serves()
        self.assertNotIn("xdp", host.run("ip", "link", "show", "eth0")[1])

    def test_takes_over_from_one_that_was_killed(self):
        self.aggregator.kill()
        self.assertIn("xdp", self.aggregator.host.run("ip", "link", "show", "eth0")[1])
        self.aggregator.start(driver=self.driver)
        self.assert_serves()

    def test_counts_frames_that_it_has_no_room_for(self):
        worker, host = self.lab.workers[0], self.aggregator.host
        before = host.received_packets()
        ping = ["ping", "-c", "1", "-W", "5", self.aggregator.address]
        self.assertEqual(worker.run(*ping)[0], 0)
        self.aggregator.process.kill(signal.SIGSTOP)
        stopped_at = host.received_packets()
        with worker.namespace.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(4000):
                sender.sendto(b"not a natagg packet", (self.aggregator.address, 4790))
        # The kernel fills as many buffers as the driver gave it.
        wait_until(lambda: host.received_packets() > stopped_at + 3000, 10, "the datagrams",
                   self.aggregator.process)
        self.aggregator.process.kill(signal.SIGCONT)
        come = host.received_packets() - before
        wait_until(lambda: worker.run(*ping)[0] == 0, 20, "an answer", self.aggregator.process)
        counters = self.aggregator.stop()
        missed = counters["device_rx_missed"]
        self.assertGreater(missed, 0)
        # What had come before the answered ping has been seen or counted, and nothing twice.
        self.assertGreaterEqual(counters["rx_frames"] + missed, come)
        self.assertLessEqual(counters["rx_datagrams"] + missed, host.received_packets() - before)


class XdpOfTwoShards(DeviceTest):
    driver = "net_af_xdp"
    obstacle = staticmethod(xdp_obstacle)
    shards = 2
    mtu = XDP_MAX_MTU

    def test_serves_workers_with_the_longest_frames(self):
        reports = self.assert_serves()
        self.assertEqual({report["shards"] for report in reports}, {2})
        self.assertGreater(reports[0]["values_per_packet"], 3000)


class XdpOfJumboFrames(DeviceTest):
    driver = "net_af_xdp"
    obstacle = staticmethod(xdp_obstacle)
    mtu = XDP_MAX_MTU + 1

    def setUp(self):
        self.aggregator = self.lab.aggregators[0]

    def test_is_refused_with_the_remedy(self):
        with self.assertRaisesRegex(LabError, f"MTU {self.mtu} is more than the {XDP_MAX_MTU} that "
                                              "net_af_xdp carries; lower the interface's"):
            self.aggregator.start(driver=self.driver)


class Tap(DeviceTest):
    driver = "net_tap"
    obstacle = staticmethod(tap_obstacle)

    def test_serves_workers_over_a_bridge_and_leaves_no_interface(self):
        host = self.aggregator.host
        self.assertEqual(host.run("ip", "link", "show", "tap0")[0], 0)
        self.assert_serves()
        self.assertNotEqual(host.run("ip", "link", "show", "tap0")[0], 0)

    def test_an_mtu_that_the_driver_has_not_is_refused(self):
        self.aggregator.stop()
        with self.assertRaisesRegex(LabError, "MTU 9000 is more than the 1500 of DPDK's net_tap"):
            self.aggregator.start(driver=self.driver, mtu=9000)


class TapOfTwoShards(DeviceTest):
    driver = "net_tap"
    obstacle = staticmethod(tap_obstacle)
    shards = 2

    def test_serves_workers(self):
        reports = self.assert_serves()
        self.assertEqual({report["shards"] for report in reports}, {2})


if __name__ == "__main__":
    harness.main()
