#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""What a switch records of a real job replays with the same bits, in process and into a daemon."""

import json
import signal

import harness
from harness import GRADIENTS, Process, wait_until

TOOLS = harness.BUILD / "tools"
LAST = bytes.fromhex("feedfacecafe")


class Replay(harness.LabTest):
    shards = 2

    def replay(self, trace, *options):
        """The report of a replay, run at worker 0; nothing is wrong."""
        status, text = self.lab.workers[0].run(
            TOOLS / "natagg-replay", trace, "--json", *options, limit=60)
        self.assertEqual(status, 0, text)
        report = json.loads(text)
        self.assertEqual((report["answers"]["wrong"], report["answers"]["missing"]), (0, 0))
        self.assertEqual((report["trace"]["findings"], report["findings"]), ([], []))
        return report

    def generate(self, *options):
        trace = self.lab.scratch / "generated.pcap"
        status, text = self.lab.workers[0].run(
            TOOLS / "natagg-tracegen", "--shards", self.shards, "--output", trace, *options)
        self.assertEqual(status, 0, text)
        return trace

    def record(self, action):
        """Does it while the switch records the aggregator's port."""
        trace = self.lab.scratch / "recorded.pcap"
        with self.lab.switch.entered():
            tcpdump = Process(["tcpdump", "-i", self.lab.aggregators[0].host.port, "-s", "0", "-B",
                               "16384", "-Z", "root", "-U", "-w", trace, "udp or icmp"],
                              self.lab.scratch / "tcpdump.log")
        wait_until(lambda: "listening on" in tcpdump.text(), 20, "tcpdump", tcpdump)
        action()
        # What it has not read when it ends is lost: the ping comes last.
        status, text = self.lab.workers[0].run("ping", "-c", "1", "-W", "5", "-p", LAST.hex(),
                                               self.lab.aggregators[0].address)
        self.assertEqual(status, 0, text)
        wait_until(lambda: LAST in trace.read_bytes(), 20, "the last packet", tcpdump)
        tcpdump.kill(signal.SIGINT)
        self.assertEqual(tcpdump.wait(20), 0, tcpdump.text())
        self.assertIn("\n0 packets dropped by kernel", tcpdump.text())
        return trace

    def test_of_a_recorded_job_gives_the_same_bits(self):
        trace = self.record(lambda: self.lab.all_reduce(
            4, input=lambda rank: GRADIENTS[rank], seed=5, repeat=2))
        aggregator = self.lab.aggregators[0].address
        chunks = 2 * 153  # of 1,408 values
        for options in ((), ("--to", aggregator), ("--to", aggregator, "--recorded-speed")):
            with self.subTest(options=options):
                report = self.replay(trace, *options)
                self.assertEqual(report["answers"]["right"], chunks)
                self.assertGreaterEqual(report["trace"]["results_right"], chunks)
                self.assertEqual(report["trace"]["results_unchecked"], 0)
                self.assertEqual(report["trace"]["shards"], 2)

    def test_of_generated_jobs_into_a_daemon_gives_the_same_bits_in_a_loop(self):
        trace = self.generate("--world", 5, "--jobs", 2, "--count", 100_000, "--loss", 0.02,
                              "--duplication", 0.02, "--reordering", 0.02)
        report = self.replay(trace, "--to", self.lab.aggregators[0].address, "--loop", 3)
        self.assertEqual(report["answers"]["right"], 3 * 2 * 72)
        self.assertGreater(report["packets_per_second"], 100)
        self.assertGreater(report["latency_us"]["p50"], 1)


if __name__ == "__main__":
    harness.main()
