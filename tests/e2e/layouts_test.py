#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""The same job gives the same bits on every rank of every layout, and those of the definition."""

import harness
from harness import GRADIENTS, GRADIENT_LENGTH, REDUCED

WORLDS = (2, 9) if REDUCED else (1, 2, 3, 4, 8, 9)
LENGTHS = (0, 1, 1407, 1408, 1409, GRADIENT_LENGTH)
LARGE = 26_214_400  # values: 100 MiB of float32
SEED = 20_260_101

# By (world, length): the checksum of the first layout, which has been compared with the definition.
known_checksums = {}


class Layout(harness.LabTest):
    workers = max(WORLDS)

    def checksums(self, reports):
        return {report["checksum"] for report in reports}

    def first_to_check(self, world, length):
        """Option of the tool: rank 0 compares what no layout has compared before."""
        known = (world, length) in known_checksums
        return lambda rank: rank == 0 and not known or None

    def assert_same_bits(self, reports, world, length):
        self.assertEqual(len(self.checksums(reports)), 1, "ranks have other bits")
        checksum = reports[0]["checksum"]
        self.assertEqual(checksum, known_checksums.setdefault((world, length), checksum))

    def all_reduce_everything(self):
        """All lengths as jobs of their own at the same time, for each number of workers."""
        for world in WORLDS:
            jobs = {length: self.lab.start_ranks(
                world, count=length, seed=SEED, job=job,
                check=self.first_to_check(world, length))
                for job, length in enumerate(LENGTHS)}
            for length, ranks in jobs.items():
                reports = [rank.done(60) for rank in ranks]
                with self.subTest(world=world, length=length):
                    self.assert_same_bits(reports, world, length)
                    self.assertEqual(reports[0]["shards"], self.aggregators * self.shards)
                    if not self.options:  # a lossy path may look narrower than it is
                        self.assertEqual(reports[0]["values_per_packet"],
                                         1408 if self.mtu == 1500 else 8832)


class Definition(Layout):
    def test_gives_the_same_bits_with_nearest_rounding(self):
        for world in WORLDS:
            reports = self.lab.all_reduce(
                world, count=GRADIENT_LENGTH, rounding="nearest", repeat=2,
                check=lambda rank: rank == 0 or None)
            self.assertEqual(len(self.checksums(reports)), 1)
            self.assertEqual(reports[0]["checked"], 2)

    def test_gives_the_same_bits_in_every_type(self):
        for kind in ("float32", "float64", "float16", "bfloat16"):
            for average in (None, True):
                with self.subTest(type=kind, average=average):
                    reports = self.lab.all_reduce(2, type=kind, average=average, count=5000,
                                                  seed=SEED, repeat=2, check=True)
                    self.assertEqual(len(self.checksums(reports)), 1)
                    for report in reports:
                        self.assertEqual((report["type"], report["checked"]), (kind, 2))

    def test_gives_the_same_bits_of_real_gradients_in_every_form(self):
        for options in ({"in_place": True}, {"average": True}, {"average": True, "shift": 8},
                        {"rounding": "nearest"}, {"in_flight": 4, "window": 32}):
            with self.subTest(options=options):
                reports = self.lab.all_reduce(
                    4, input=lambda rank: GRADIENTS[rank], repeat=4,
                    seed=SEED, check_inputs=lambda rank: GRADIENTS if rank == 0 else None,
                    **options)
                self.assertEqual(len(self.checksums(reports)), 1)
                self.assertEqual(reports[0]["checked"], 4)


class EveryLength:
    """With Layout, one test case a layout: see below."""

    def test_give_the_same_bits(self):
        self.all_reduce_everything()


class LargeTensor:
    """Likewise, for few layouts: it takes long."""

    def test_give_the_same_bits_for_a_large_tensor(self):
        reports = self.lab.all_reduce(2, count=LARGE, seed=SEED, limit=120,
                                      check=self.first_to_check(2, LARGE))
        self.assert_same_bits(reports, 2, LARGE)


def add_layout(aggregators, shards, mtu):
    name = f"Layout{aggregators}x{shards}AtMtu{mtu}"
    members = {"aggregators": aggregators, "shards": shards, "mtu": mtu}
    bases = [EveryLength, Layout]
    if not REDUCED and (aggregators, shards, mtu) in ((2, 2, 1500), (1, 1, 9000)):
        bases.insert(0, LargeTensor)
    globals()[name] = type(name, tuple(bases), members)


for number_of_aggregators in (1, 2):
    for number_of_shards in (1, 2):
        for path_mtu in (1500, 9000):
            if not REDUCED or number_of_aggregators == number_of_shards:
                add_layout(number_of_aggregators, number_of_shards, path_mtu)


class Losses(Layout):
    """5 % each way in the daemons, and as much again in the workers of the second test."""

    aggregators = 2
    shards = 2
    options = {"inject_loss_rx": 0.05, "inject_loss_tx": 0.05, "inject_seed": 7}

    def test_in_the_network_give_the_same_bits(self):
        self.all_reduce_everything()

    def test_at_both_ends_give_what_the_definition_says(self):
        reports = self.lab.all_reduce(
            4, input=lambda rank: GRADIENTS[rank], seed=SEED, repeat=2,
            check_inputs=lambda rank: GRADIENTS, transmit_loss=0.05, receive_loss=0.05,
            loss_seed=lambda rank: rank)
        self.assertEqual(len(self.checksums(reports)), 1)
        for report in reports:
            self.assertGreater(report["retransmissions"], 0)
            self.assertGreater(report["injected_losses"], 0)


class IoThreads(Layout):
    aggregators = 2
    shards = 2

    def test_give_the_same_bits_whatever_each_rank_has_of_them(self):
        reports = self.lab.all_reduce(
            4, input=lambda rank: GRADIENTS[rank], seed=SEED, repeat=3,
            check_inputs=lambda rank: GRADIENTS if rank == 0 else None,
            io_threads=lambda rank: 1 + 2 * rank)
        self.assertEqual(len(self.checksums(reports)), 1)
        self.assertEqual(reports[0]["checked"], 3)
        # No more than there are shards.
        self.assertEqual([report["io_threads"] for report in reports], [1, 3, 4, 4])


if __name__ == "__main__":
    harness.main()
