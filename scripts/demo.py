#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""What ./quickstart shows once natagg is built: real gradients all-reduced by the real daemon and
library between network namespaces, and what that took, beside what a ring all-reduce takes."""

import array
import filecmp
import hashlib
import math
import subprocess
import sys
import time
from pathlib import Path

import isolation
from natagg_lab import Lab, LabError

ROOT = Path(__file__).resolve().parents[1]
WORLD = 4
SHARDS = 2
SEED = 1
TIMED_OPERATIONS = 50
OMEGA = 1 / 8  # variance of natural compression: E|C(x) - x|^2 <= OMEGA |x|^2


def read_floats(path):
    values = array.array("f", path.read_bytes())
    if sys.byteorder == "big":
        values.byteswap()
    return values


def relative_errors(inputs, result):
    """The error's norm over the exact sum's, as it is and as theory bounds its expectation."""
    exact = [math.fsum(values) for values in zip(*inputs)]
    exact_square = math.fsum(value * value for value in exact)
    error_square = math.fsum((a - b) ** 2 for a, b in zip(result, exact))
    # Workers round independently, and the aggregator rounds the sum that they make.
    workers = OMEGA * math.fsum(value * value for values in inputs for value in values)
    aggregator = OMEGA * (exact_square + workers)
    return (math.sqrt(error_square / exact_square),
            math.sqrt((workers + aggregator) / exact_square))


class Style:
    """Colours, on terminals only."""

    def __init__(self, stream):
        self._on = stream.isatty()

    def bold(self, text):
        return f"\033[1m{text}\033[0m" if self._on else text

    def green(self, text):
        return f"\033[32m{text}\033[0m" if self._on else text


class Demonstration:
    def __init__(self, lab):
        self.lab = lab
        self.style = Style(sys.stdout)
        self.inputs = [ROOT / "tests" / "data" / f"step400.rank{rank}.f32" for rank in range(WORLD)]
        self.outputs = [lab.scratch / f"rank{rank}.f32" for rank in range(WORLD)]

    def run(self):
        self.lab.aggregators[0].start(SHARDS)
        reports = self.lab.all_reduce(
            WORLD, input=lambda rank: self.inputs[rank], output=lambda rank: self.outputs[rank],
            check_inputs=lambda rank: self.inputs, seed=SEED)
        timed = self.lab.all_reduce(
            WORLD, input=lambda rank: self.inputs[rank], seed=SEED, repeat=TIMED_OPERATIONS)
        self.lab.aggregators[0].stop()
        self.print_traffic(reports, timed)
        identical = self.print_results(reports)
        self.print_error()
        self.print_exponents()
        return identical

    def print_traffic(self, reports, timed):
        count = reports[0]["count"]
        ring = 8 * (WORLD - 1) * count // WORLD
        print(f"{WORLD} workers sum a real gradient, the {count:,} values of a small CNN, through "
              f"one aggregator of\n{SHARDS} shards. Each has a network namespace; a bridge is the "
              "switch between them.\n")
        print(self.style.bold(f"{'':29}{'natagg':>12}{'float32 ring':>15}"))
        for verb in ("sent", "received"):
            most = max(report[f"bytes_{verb}"] for report in reports)
            print(f"  {'bytes ' + verb + ' by a worker':27}{most:>12,}{ring:>15,}"
                  f"   {self.style.green(f'{ring / most:.1f} times less')}")
        milliseconds = max(report["seconds"] for report in timed) / TIMED_OPERATIONS * 1000
        again = sum(report["retransmissions"] for report in reports)
        packets = sum(report["data_packets"] for report in reports)
        multicast = sum(report["multicast_results"] for report in reports)
        results = sum(report["result_packets"] for report in reports)
        print(f"  {'time of one sum':27}{milliseconds:>9.1f} ms{'':18}mean of {TIMED_OPERATIONS}")
        print(f"  {'retransmissions':27}{again:>12,}{'':18}of {packets:,} packets of all workers")
        print(f"  {'results by multicast':27}{multicast:>12,}{'':18}of {results:,} received\n")

    def print_results(self, reports):
        print(self.style.bold("  SHA-256 of each rank's result"))
        for rank, path in enumerate(self.outputs):
            print(f"  rank {rank}  {hashlib.sha256(path.read_bytes()).hexdigest()}")
        identical = all(filecmp.cmp(self.outputs[0], path, shallow=False) for path in self.outputs)
        right = all(report["checked"] == report["operations"] for report in reports)
        print(f"  {'identical on all ranks':45}{self.verdict(identical)}")
        print(f"  {'equal, bit by bit, to a slow recomputation':45}{self.verdict(right)}\n")
        return identical and right

    def verdict(self, good):
        return self.style.green("yes") if good else "NO"

    def print_error(self):
        inputs = [read_floats(path) for path in self.inputs]
        error, bound = relative_errors(inputs, read_floats(self.outputs[0]))
        print(f"  {'error of this one sum, over its norm':45}{error:.3f}   without bias: it averages "
              "out")
        print(f"  {'theory (1/8 at workers and at aggregator)':45}{bound:.3f}   at most, in "
              "expectation\n")

    def print_exponents(self):
        tool = self.lab.build / "tools" / "natagg-report"
        print(subprocess.run([tool, self.outputs[0]], stdout=subprocess.PIPE, text=True,
                             timeout=20, check=True).stdout, end="")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: demo.py BUILD_DIRECTORY")
    build = Path(sys.argv[1]).resolve()
    scratch = build / "lab"
    isolation.isolate(scratch)
    start = time.monotonic()
    try:
        with Lab(build, scratch, aggregators=1, workers=WORLD) as lab:
            good = Demonstration(lab).run()
    except LabError as error:
        sys.exit(f"quickstart: {error}")
    print(f"\nDone in {time.monotonic() - start:.1f} s; nothing is left running.")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
