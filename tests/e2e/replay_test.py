#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""What a switch records of a real job replays with the same bits, in process and into a daemon."""

import json
import shutil
import signal
import unittest
from pathlib import Path

import harness
from harness import GRADIENTS, Process, wait_until

TOOLS = harness.BUILD / "tools"
LAST = bytes.fromhex("feedfacecafe")


class ReplayTest(harness.LabTest):
    def replay(self, trace, *options):
        """The report of a replay, run at worker 0; nothing is wrong."""
        status, text = self.lab.workers[0].run(
            TOOLS / "natagg-replay", trace, "--json", *options, limit=60)
        self.assertEqual(status, 0, text)
        report = json.loads(text)
        self.assertEqual((report["answers"]["wrong"], report["answers"]["missing"]), (0, 0))
        self.assertEqual((report["trace"]["findings"], report["findings"]), ([], []))
        return report


class Replay(ReplayTest):
    shards = 2

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

    def test_of_what_the_workers_recorded_gives_the_same_bits(self):
        files = [self.lab.scratch / f"rank{rank}.pcap" for rank in range(3)]
        reports = self.lab.all_reduce(3, input=lambda rank: GRADIENTS[rank], seed=5, repeat=2,
                                      record=lambda rank: files[rank])
        for report in reports:
            self.assertEqual((report["unrecorded_packets"], report["record_error"]), (0, 0))
            self.assertGreaterEqual(report["recorded_packets"],
                                    report["data_packets"] + report["result_packets"])
        chunks = 2 * 153  # of 1,408 values
        for options in ((), ("--to", self.lab.aggregators[0].address)):
            with self.subTest(options=options):
                report = self.replay(*files, *options)
                self.assertEqual(report["answers"]["right"], chunks)
                self.assertGreaterEqual(report["trace"]["results_right"], 3 * chunks)
        status, text = self.lab.workers[0].run(TOOLS / "natagg-replay", files[1])
        self.assertEqual(status, 1, text)
        self.assertIn("no JOIN of ranks 0 and 2 is in the trace", text)
        status, text = self.lab.workers[0].run("tcpdump", "-nr", files[1])
        self.assertEqual(status, 0, text)
        self.assertGreater(text.count(" IP "), reports[1]["recorded_packets"])

    def test_of_generated_jobs_into_a_daemon_gives_the_same_bits_in_a_loop(self):
        trace = self.generate("--world", 5, "--jobs", 2, "--count", 100_000, "--loss", 0.02,
                              "--duplication", 0.02, "--reordering", 0.02)
        report = self.replay(trace, "--to", self.lab.aggregators[0].address, "--loop", 3)
        self.assertEqual(report["answers"]["right"], 3 * 2 * 72)
        self.assertGreater(report["packets_per_second"], 100)
        self.assertGreater(report["latency_us"]["p50"], 1)


class Capture(ReplayTest):
    """By DPDK's own tool, from the daemon's device."""

    @classmethod
    def setUpClass(cls):
        if shutil.which("dpdk-dumpcap") is None:
            raise unittest.SkipTest("no dpdk-dumpcap, of Debian's package dpdk-dev")
        free = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
        if not free.exists() or int(free.read_text(encoding="ascii")) < 160:
            raise unittest.SkipTest("needs 160 free hugepages of 2 MB")
        super().setUpClass()

    @staticmethod
    def remove_hugepages(aggregator):
        """What DPDK leaves to its next start."""
        if aggregator.process.running():
            aggregator.kill()
        for file in Path("/dev/hugepages").glob(f"{aggregator.name}map_*"):
            file.unlink()

    def test_of_the_device_replays_with_the_same_bits(self):
        aggregator = self.lab.aggregators[0]
        aggregator.stop()
        aggregator.start(self.shards, hugepages=True)
        self.addCleanup(self.remove_hugepages, aggregator)
        trace = self.lab.scratch / "captured.pcapng"
        dumpcap = aggregator.host.start(
            ["dpdk-dumpcap", "--file-prefix", aggregator.name, "-i", "0", "-w", trace],
            self.lab.scratch / "dumpcap.log", {"RUNTIME_DIRECTORY": aggregator.runtime})
        wait_until(lambda: "Packets captured" in dumpcap.text(), 20, "dpdk-dumpcap", dumpcap)
        self.lab.all_reduce(4, input=lambda rank: GRADIENTS[rank], seed=5)
        dumpcap.kill(signal.SIGINT)
        self.assertEqual(dumpcap.wait(20), 0, dumpcap.text())
        report = self.replay(trace)
        chunks = 153  # of 1,408 values
        self.assertGreaterEqual(report["trace"]["results_right"], chunks)
        self.assertEqual(report["answers"]["right"], chunks)
        aggregator.stop()


if __name__ == "__main__":
    harness.main()
