#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""theory_test.py NATAGG-THEORY NATAGG-KERNELS FILE...: the paper's figures as the tool prints them,
and what it measures beside them."""

import os
import re
import subprocess
import sys
import unittest


def run(*command, **environment):
    return subprocess.run(command, capture_output=True, text=True, timeout=280, check=False,
                          env={**os.environ, **environment})


class Theory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.done = run(THEORY, *FILES)
        cls.rows = {}
        for line in cls.done.stdout.splitlines():
            match = re.match(r"  (\S.*?)((?: +-?[\d.e+-]+){1,3})$", line)
            if match and len(line) > 56:
                cls.rows[line[2:56].strip()] = [float(number) for number in line[56:].split()]

    def near(self, row, *expected):
        self.assertEqual(len(self.rows[row]), len(expected), row)
        for printed, wanted in zip(self.rows[row], expected):
            self.assertAlmostEqual(printed, wanted, delta=0.00051 * max(1, abs(wanted)), msg=row)

    def test_ends_well(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)

    def test_natural_compression_has_a_variance_of_an_eighth(self):
        self.near("C_nat at its worst input, 4/3 2^k", 1 / 8, 1 / 8, 1 / 8)
        self.near("C_nat at 2^k", 0, 0, 0)
        self.near("C_nat, root of w", 0.354)
        self.near("C_nat with more mantissa bits: 1", 1 / 24)

    def test_compositions(self):
        self.near("C_nat after C_nat of a sum", 17 / 64)
        self.near("C_nat after w = 1", 9 / 8 + 1 / 8)

    def test_sizes(self):
        self.near("float32 in 9 bits: sign and exponent", 3.556)
        self.near("float64 in 12 bits: sign and exponent", 5.333)
        self.near("float64 in 11 bits (the paper's 5.82)", 5.818)
        self.near("float32 in natagg's 8 bits", 4)
        self.near("TopK of 32-bit indices: values of 8 bits over 32", 0.625)

    def test_table_1_recomputes(self):
        for row, low, high in (("C_nat", 3.16, 3.56), ("S_q", 0.605, 6.05),
                               ("C_nat after S_q", 0.950, 10.69),
                               ("C_nat both ways (Model 1)", 2.81, 3.16)):
            self.assertAlmostEqual(self.rows[row][0], low, delta=0.0051, msg=row)
            self.assertAlmostEqual(self.rows[row][1], high, delta=0.0051, msg=row)

    def test_bidirectional_sgd(self):
        self.near("no compression, n = 8", 1 / 8, 0, 1)
        self.near("C_nat at the workers, n = 8", 9 / 64, 1 / 64, 1 + 1 / 64)
        self.near("C_nat both ways, n = 8", 81 / 512, 9 / 512, 9 / 8 + 9 / 512)

    def test_measurements_are_what_is_expected_of_the_data_and_within_theory(self):
        measured = {row: numbers for row, numbers in self.rows.items()
                    if row.startswith(("D_nat", "D_sta", "S_q, ", "C_nat of", "sum"))
                    and len(numbers) == 3}
        self.assertEqual(len(measured), 10)
        for row, (bound, expected, found) in measured.items():
            self.assertLessEqual(expected, bound * 1.000001, row)
            self.assertAlmostEqual(found / expected, 1, delta=0.03, msg=row)

    def test_dithering(self):
        root = 1000 ** 0.5
        self.assertAlmostEqual(self.rows["D_nat, p = 2, s = 4"][0], 1 / 8 + root / 8, 4)
        self.assertAlmostEqual(self.rows["D_nat, p = 2, s = 8"][0], 1 / 8 + 1000 / 2**14, 4)
        self.assertAlmostEqual(self.rows["D_sta, p = 2, levels 128"][0], 1000 / 2**14, 4)
        self.near("D_sta, p infinite, levels 1 (TernGrad)", root)

    def test_says_what_it_cannot_do(self):
        self.assertEqual(run(THEORY, "--no-such").returncode, 2)
        self.assertEqual(run(THEORY, "no-such-file").returncode, 1)


class Kernels(unittest.TestCase):
    def test_lists_the_scalar_ones_and_chooses_one(self):
        done = run(KERNELS)
        self.assertIn("scalar   supported", done.stdout)
        self.assertEqual(done.stdout.count("chosen"), 1)

    def test_takes_the_one_named(self):
        done = run(KERNELS, NATAGG_KERNELS="scalar")
        self.assertIn("scalar   supported, chosen", done.stdout)
        self.assertEqual(done.returncode, 0)
        done = run(KERNELS, NATAGG_KERNELS="mmx")
        self.assertEqual(done.returncode, 1)
        self.assertIn("mmx", done.stderr)


if __name__ == "__main__":
    THEORY, KERNELS, *FILES = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
