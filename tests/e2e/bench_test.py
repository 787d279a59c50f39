#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""natagg-bench measures what it says, and says what it has measured."""

import csv
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from xml.etree import ElementTree

from harness import BUILD, ROOT

sys.path.insert(0, str(ROOT / "tools" / "bench"))

# pylint: disable=wrong-import-position
from figures import figures, operation_seconds, percentile  # noqa: E402
import pictures  # noqa: E402
import report  # noqa: E402
from points import Network, Point, parse_loss, parse_rate, parse_size, size_text  # noqa: E402

GLOO = (BUILD / "tools/bench/natagg-bench-rank-gloo").exists()
TORCH = (BUILD / "tools/bench/natagg-bench-rank-torch").exists()
SECOND = 10**9


def bench(*arguments, status=0):
    done = subprocess.run(
        [sys.executable, "-B", ROOT / "tools" / "natagg-bench", "--build", BUILD,
         "--seconds", "0.05", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, timeout=100, check=False)
    if done.returncode != status:
        raise AssertionError(f"ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done


class Bench(unittest.TestCase):
    def test_checks_and_measures_each_library_at_each_point(self):
        backends = ["natagg", "natagg-memif", *(["gloo"] if GLOO else []),
                    *(["torch"] if TORCH else []), "udp"]
        done = bench("--worlds", "2", "--sizes", "1v,100KB", "--mtu", "9000", "--format", "json",
                     "--backends", ",".join(backends))
        self.assertEqual(done.stderr, "", "a pipe is no terminal")
        report = json.loads(done.stdout)
        self.assertEqual(report["machine"]["cores"], os.cpu_count())
        results = report["results"]
        self.assertEqual({(result["backend"], result["bytes"]) for result in results},
                         {(backend, size) for backend in backends for size in (4, 100_000)} -
                         {("udp", 100_000)}, "its round trip is of one packet")
        for result in results:
            with self.subTest(backend=result["backend"], algorithm=result["algorithm"]):
                self.assertGreaterEqual(result["operations"], 5)
                self.assertLessEqual(result["p10_s"], result["median_s"])
                self.assertLessEqual(result["median_s"], result["p90_s"])
                self.assertGreater(result["worker_cpu_ns_per_byte"], 0)
                self.assertAlmostEqual(result["bandwidth_MBps"] * result["median_s"] * 1e6,
                                       result["bytes"], delta=1)
        natagg = next(result for result in results
                      if (result["backend"], result["bytes"]) == ("natagg", 100_000))
        self.assertEqual(natagg["values_per_packet"], 8832)
        self.assertGreater(natagg["aggregator_cpu_ns_per_byte"], 0)
        # A byte a value each way, in packets with headers.
        for name in ("sent_bytes_per_operation", "received_bytes_per_operation"):
            self.assertGreater(natagg[name], 25_000)
            self.assertLess(natagg[name], 27_000)
        if GLOO:
            ring = next(result for result in results
                        if result["algorithm"] == "ring" and result["bytes"] == 100_000)
            # 2 (n - 1) / n times four bytes a value.
            self.assertGreater(ring["sent_bytes_per_operation"], 100_000)
            self.assertLess(ring["sent_bytes_per_operation"], 110_000)

    def test_limited_and_lossy_links_bound_what_is_measured(self):
        done = bench("--worlds", "2", "--sizes", "1MB", "--rate", "200Mbit", "--loss", "0,2%",
                     "--aggregators", "2", "--backends", "natagg", "--format", "csv")
        clean, lossy = csv.DictReader(io.StringIO(done.stdout))
        # 250,000 bytes and headers at 200 Mbit/s, of which a bucket of tokens may lend a millisecond.
        self.assertGreater(float(clean["median_s"]), 0.009)
        self.assertLess(float(clean["payload_share"]), 1.1)
        self.assertGreater(float(clean["link_share"]), float(clean["payload_share"]))
        self.assertGreater(int(lossy["retransmissions"]), 0)
        self.assertEqual(float(lossy["loss"]), 0.02)

    def test_says_why_a_daemon_does_not_start(self):
        done = bench("--worlds", "1", "--sizes", "1v", "--mtu", "9000", "--driver", "af_xdp",
                     "--backends", "natagg", status=1)
        self.assertRegex(done.stdout, "not measured: 1v natagg udp: natagg-aggregator: "
                         ".*(net_af_xdp|network device)")

    def test_says_what_it_has_no_time_for(self):
        done = bench("--worlds", "2", "--sizes", "1v", "--backends", "natagg", "--budget", "0.1")
        self.assertIn("not measured: 1v natagg udp: the time budget is used up", done.stdout)

    def test_names_an_option_that_makes_no_sense(self):
        for arguments, word in ((("--sizes", "3B"), "float32"), (("--rate", "fast"), "fast"),
                                (("--backends", "nccl"), "nccl"), (("--loss", "2"), "share")):
            self.assertIn(word, bench(*arguments, status=2).stderr)


class Figures(unittest.TestCase):
    ROWS = [[[0, 5, 9, 14]], [[1, 4, 11, 12]]]  # of two ranks, one row of three operations

    def reports(self):
        return [{"rows": [[stamp * SECOND for stamp in row] for row in rows], "operations": 3,
                 "cpu_ns": 300, "watched_cpu_ns": [60, 60], "sent_bytes": 600 + rank,
                 "received_bytes": 300, "tcp_retransmissions": 1 + rank, "before": {}, "after": {}}
                for rank, rows in enumerate(self.ROWS)]

    def test_time_lies_between_the_last_ranks_completions(self):
        self.assertEqual(operation_seconds(self.reports()), [6, 3])

    def test_are_of_all_operations_and_ranks(self):
        result = figures(Point(Network(2, rate=1000), 40), "gloo", self.reports(), [])
        self.assertEqual(result["operations"], 2)
        self.assertEqual(result["worker_cpu_ns_per_byte"], 600 / (3 * 2 * 40))
        self.assertEqual(result["aggregator_cpu_ns_per_byte"], 120 / (3 * 2 * 40))
        self.assertEqual(result["retransmissions"], 3)
        self.assertAlmostEqual(result["link_share"], 601 / 3 * 8 / 3 / 1000)
        self.assertEqual((result["times_s"], result["lead_ins_s"]), ([6, 3], [5]))

    def test_percentiles_are_values_that_were_measured(self):
        ordered = list(range(1, 11))
        self.assertEqual([percentile(ordered, share) for share in (0, 0.1, 0.5, 0.9, 1)],
                         [1, 1, 5, 9, 10])
        self.assertEqual(percentile([7], 0.99), 7)


class Points(unittest.TestCase):
    def test_are_read_as_people_write_them(self):
        self.assertEqual([parse_size(text) for text in ("1v", "4KB", "1KiB", "1.5MB")],
                         [4, 4000, 1024, 1_500_000])
        self.assertEqual([parse_rate(text) for text in ("0", "200Mbit", "1Gbit")], [0, 2e8, 1e9])
        self.assertEqual([parse_loss(text) for text in ("0", "1%", "0.001")], [0, 0.01, 0.001])
        for size in (4, 1024, 4000, 100_000_000):
            self.assertEqual(parse_size(size_text(size)), size)

    def test_links_share_loss_and_rate_as_documented(self):
        network = Network(8, rate=2e8, loss=0.01, aggregators=2)
        self.assertEqual(network.aggregator_link.rate * 2, network.worker_link.rate * 8)
        passed = (1 - network.worker_link.loss) * (1 - network.aggregator_link.loss)
        self.assertAlmostEqual(passed, 0.99)


def result(backend, algorithm, size, seconds, **more):
    return {"backend": backend, "algorithm": algorithm, "world": 8, "mtu": 1500, "rate_bps": 2e8,
            "loss": 0, "aggregators": 1, "bytes": size, "tensors": 1, "operations": 5,
            "median_s": seconds, "bandwidth_MBps": size / seconds / 1e6, "payload_share": 0.5,
            "worker_cpu_ns_per_byte": 2.0, "aggregator_cpu_ns_per_byte": 0.25, "noisy": False,
            **more}


class Page(unittest.TestCase):
    RESULTS = [result("natagg", "udp", 10**7, 0.1), result("gloo", "ring", 10**7, 0.8),
               result("gloo", "bcube", 10**7, 1.0), result("mpi-tcp", "ring", 10**7, 0.5, noisy=True),
               result("natagg", "udp", 10**7, 0.12, loss=0.01), result("natagg", "udp", 10**8, 1.0),
               result("natagg", "udp", 10**6, 0.02)]

    WHERE = {"cores": 2, "cpu": "a CPU", "cpu_vectors": [], "memory_GiB": 1, "kernel": "6",
             "date": "today", "natagg": "0", "dpdk": "", "gloo": "", "open_mpi": ""}

    def setUp(self):
        self.directory = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.directory / "performance").mkdir()

    def test_has_the_best_of_each_library_in_the_place_for_results(self):
        page = self.directory / "performance.md"
        page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n", encoding="utf-8")
        report.write(self.RESULTS, self.WHERE, self.directory, "the command")
        text = page.read_text(encoding="utf-8")
        self.assertTrue(text.startswith("before\n" + report.BEGIN))
        self.assertTrue(text.endswith(report.END + "\nafter\n"))
        self.assertNotIn("old", text)
        self.assertIn("| 10MB | 100 | 12.5 (ring) | ~20 (ring) | 50.0 % | 5.00 | 2.00 + 0.25 | 2.00 | "
                      "2.00 |", text)
        self.assertIn("| 10MB | 83.33 | 50.0 % | 1.200 | - | 2.00 + 0.25 |\n", text)
        self.assertIn("1 of 7 runs were noisy", text)

    def test_has_columns_for_what_was_measured_alone(self):
        free = [result(name, "default", 10**6, seconds, rate_bps=0)
                for name, seconds in (("natagg", 0.01), ("torch", 0.04), ("natagg-ethdev", 0.02))]
        columns = report.page([free[0], *self.RESULTS, *free[1:]], self.WHERE, [], "it")
        self.assertIn("| tensor | natagg | PyTorch | natagg, DPDK | natagg / best over TCP |", columns)
        self.assertIn("| 1MB | 100 | 25 | 50 | 4.00 |", columns)
        self.assertEqual(columns.count("### "), 3, "a table a network, however it was measured")

    def test_has_pictures_with_a_curve_and_a_bar_a_library(self):
        written = pictures.write(self.RESULTS, self.directory)
        self.assertEqual([path.name for _, path in written],
                         ["bandwidth-1.svg", "bars-1.svg"])
        trees = [ElementTree.parse(path) for _, path in written]
        circles = trees[0].findall(".//{http://www.w3.org/2000/svg}circle")
        self.assertEqual(len(circles), 5)  # natagg's three sizes, and the others' one
        texts = [text.text for text in trees[1].iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn("100", texts)  # natagg's MB/s at 100 MB, which nobody else has
        self.assertNotIn("Gloo", texts)


if __name__ == "__main__":
    unittest.main(verbosity=2)
