#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""Workers that speak through DPDK, on the interfaces of their namespaces."""

import json

import harness
from harness import GRADIENT_LENGTH, GRADIENTS, Process

DEVICE = "ethdev:net_af_packet0,iface=eth0"
JUMBO_DEVICE = DEVICE + ",framesz=9216,blocksz=36864,framecnt=256"


class EthdevTest(harness.LabTest):
    workers = 3
    device = DEVICE

    def reduce(self, world, ethdev=lambda rank: True, **options):
        """Reports of a right all-reduce of the real gradients. The ranks that `ethdev` tells have
        an address of their own beside the kernel's."""
        reports = self.lab.all_reduce(
            world, input=lambda rank: GRADIENTS[rank], repeat=2, seed=9,
            check_inputs=lambda rank: GRADIENTS[:world] if rank == 0 else None,
            transport=lambda rank: self.device if ethdev(rank) else None,
            local=lambda rank: self.lab.spare_address(rank) if ethdev(rank) else None, **options)
        self.assertEqual(reports[0]["checked"], 2)
        self.assertEqual(len({report["checksum"] for report in reports}), 1)
        return reports


class Ethdev(EthdevTest):
    shards = 2

    def test_gives_the_bits_that_sockets_give_and_by_multicast_too(self):
        for world in (2, 3):
            with self.subTest(world=world):
                sockets = self.reduce(world, ethdev=lambda rank: False)
                for report in self.reduce(world):
                    self.assertEqual(report["checksum"], sockets[0]["checksum"])
                    self.assertGreater(report["multicast_results"], 0.9 * report["result_packets"])
                    self.assertEqual(report["send_failures"], 0)

    def test_makes_one_job_with_ranks_on_sockets_in_spite_of_losses(self):
        sockets = self.reduce(3, ethdev=lambda rank: False)
        reports = self.reduce(3, ethdev=lambda rank: rank != 1, transmit_loss=0.05,
                              receive_loss=0.05)
        self.assertEqual({report["checksum"] for report in reports}, {sockets[0]["checksum"]})
        for report in reports:
            self.assertGreater(report["injected_losses"], 0)

    def test_needs_no_address_and_no_multicast(self):
        reports = self.lab.all_reduce(3, count=GRADIENT_LENGTH, check=lambda rank: rank == 0 or None,
                                      transport=DEVICE, no_multicast=True)
        self.assertEqual([report["multicast_results"] for report in reports], [0] * 3)

    def test_leaves_nothing_behind_and_names_what_is_wrong(self):
        """The interface's name, queues, or an aggregator that is not there."""
        for device, aggregators, text in (
                ("ethdev:net_af_packet0,iface=eth7", "10.78.0.1", "ioctl failed"),
                (DEVICE + ",qpairs=2", "10.78.0.1", "spreads frames over the 2 queues"),
                (DEVICE, "10.78.0.77", "No route to host")):
            with self.subTest(device=device):
                rank = self.lab.start_rank(0, 1, count=1, transport=device, aggregators=aggregators,
                                           connect_timeout=200)
                status, report = rank.ended(20)
                self.assertEqual(status, 1, json.dumps(report))
                self.assertIn(text, report["error"])
        for worker in self.lab.workers:
            self.assertNotIn("PROMISC", worker.run("ip", "link", "show", "eth0")[1])


class EthdevOnASwitchThatSnoopsIgmp(EthdevTest):
    def test_hears_multicast_and_is_known_to_want_it(self):
        self.lab.run_in_switch("ip", "link", "set", "switch", "type", "bridge",
                               "mcast_snooping", "1", "mcast_querier", "1")
        for report in self.reduce(3):
            self.assertGreater(report["multicast_results"], 0.9 * report["result_packets"])
        with self.lab.switch.entered():
            listeners = Process(["bridge", "mdb", "show"], self.lab.scratch / "listeners.log")
        self.assertEqual(listeners.wait(20), 0, listeners.text())
        for worker in self.lab.workers:
            self.assertIn(f"port {worker.port} grp 239.78.65.0", listeners.text())


class EthdevOfJumboFrames(EthdevTest):
    mtu = 9000
    device = JUMBO_DEVICE

    def test_carries_the_most_values(self):
        reports = self.reduce(3)
        self.assertEqual({report["mtu"] for report in reports}, {9000})
        self.assertGreater(reports[0]["values_per_packet"], 8000)


class Replay(EthdevTest):
    """natagg-replay as all ranks of a trace."""

    def check(self, host, *options):
        trace = self.lab.scratch / "generated.pcap"
        tools = harness.BUILD / "tools"
        for command in (
                (tools / "natagg-tracegen", "--world", 5, "--jobs", 2, "--count", 100_000, "--loss",
                 0.02, "--duplication", 0.02, "--reordering", 0.02, "--output", trace),
                (tools / "natagg-replay", trace, "--json", "--loop", 3, "--to",
                 self.lab.aggregators[0].address, *options)):
            status, text = host.run(*command, limit=60)
            self.assertEqual(status, 0, text)
        report = json.loads(text)
        self.assertEqual(report["answers"], {"right": 3 * 2 * 72, "wrong": 0, "missing": 0})
        self.assertEqual((report["trace"]["findings"], report["findings"]), ([], []))
        return report

    def test_over_a_device_gives_the_bits_of_the_trace(self):
        self.check(self.lab.workers[0], "--transport", DEVICE, "--local", "10.78.0.201")

    def test_through_memory_shared_with_the_aggregator_too(self):
        aggregator = self.lab.aggregators[0]
        aggregator.stop()
        aggregator.start(memifs=1)
        self.check(aggregator.host, "--transport", f"memif:{aggregator.memif_socket}")
        aggregator.stop()

    def check_recorded(self, *files, results):
        """A replay in process has nothing wrong, and knows as many RESULTs at least."""
        status, text = self.lab.workers[0].run(harness.BUILD / "tools" / "natagg-replay", *files,
                                               "--json", limit=60)
        self.assertEqual(status, 0, text)
        report = json.loads(text)
        self.assertGreaterEqual(report["trace"]["results_right"], results)
        self.assertEqual(report["trace"]["results_unchecked"], 0)

    def test_takes_what_ranks_on_devices_and_sockets_recorded(self):
        files = [self.lab.scratch / f"device{rank}.pcap" for rank in range(3)]
        for report in self.reduce(3, ethdev=lambda rank: rank != 1,
                                  record=lambda rank: files[rank]):
            self.assertEqual((report["unrecorded_packets"], report["record_error"]), (0, 0))
        self.check_recorded(*files, results=3 * 2 * 153)

    def test_takes_what_a_rank_on_shared_memory_recorded(self):
        aggregator = self.lab.aggregators[0]
        aggregator.stop()
        aggregator.start(memifs=1)
        file = self.lab.scratch / "memif.pcap"
        status, text = aggregator.host.run(
            harness.BUILD / "tools" / "natagg-allreduce", "--aggregators", aggregator.address,
            "--transport", f"memif:{aggregator.memif_socket}", "--count", 100_000, "--record", file,
            limit=60)
        self.assertEqual(status, 0, text)
        self.assertNotIn("NOT RECORDED", text)
        self.check_recorded(file, results=12)  # of 8,832 values
        aggregator.stop()

    def test_refuses_packets_that_the_device_does_not_carry(self):
        trace = self.lab.scratch / "jumbo.pcap"
        tools = harness.BUILD / "tools"
        worker = self.lab.workers[0]
        worker.run(tools / "natagg-tracegen", "--count", 9000, "--mtu", 9000, "--output", trace)
        status, text = worker.run(tools / "natagg-replay", trace, "--to",
                                  self.lab.aggregators[0].address, "--transport", DEVICE)
        self.assertEqual((status, "the transport carries 1500" in text), (1, True), text)


if __name__ == "__main__":
    harness.main()
