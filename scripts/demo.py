#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""What ./quickstart shows once natagg is built: real gradients all-reduced by the real daemon and
library between network namespaces."""

import collections
import hashlib
import subprocess
import sys
import time
from pathlib import Path

import isolation
from natagg_lab import COMMAND_LIMIT, Lab, LabError

ROOT = Path(__file__).resolve().parents[1]
WORLD = 4
SHARDS = 2
SEED = 1
TIMED_OPERATIONS = 50


def verdict(good):
    """In colour on a terminal."""
    text = "yes" if good else "NO"
    return f"\033[{32 if good else 31}m{text}\033[0m" if sys.stdout.isatty() else text


class Demonstration:
    def __init__(self, lab):
        self.lab = lab
        self.inputs = [ROOT / "tests" / "data" / f"step400.rank{rank}.f32" for rank in range(WORLD)]
        self.outputs = [lab.scratch / f"rank{rank}.f32" for rank in range(WORLD)]

    def run(self):
        """Whether all was as it must be."""
        print(f"One aggregator of {SHARDS} shards, {WORLD} workers and the switch between them, each "
              "in a network\nnamespace. The workers sum a real gradient, of a small convolutional "
              "network.\n")
        self.lab.aggregators[0].start(SHARDS)
        reports = self.all_reduce(output=lambda rank: self.outputs[rank],
                                  check_inputs=lambda rank: self.inputs)
        timed = self.all_reduce(repeat=TIMED_OPERATIONS)
        self.lab.aggregators[0].stop()
        self.print_network(reports, timed)
        good = self.print_results(reports)
        self.print_report(reports)
        return good

    def all_reduce(self, **options):
        return self.lab.all_reduce(WORLD, input=lambda rank: self.inputs[rank], seed=SEED,
                                   **options)

    def print_network(self, reports, timed):
        total = {name: sum(report[name] for report in reports) for name in
                 ("data_packets", "retransmissions", "result_packets", "multicast_results")}
        milliseconds = max(report["seconds"] for report in timed) / TIMED_OPERATIONS * 1000
        print(f"  time of one sum                             {milliseconds:.1f} ms, mean of "
              f"{TIMED_OPERATIONS}")
        print(f"  retransmissions                             {total['retransmissions']} among "
              f"{total['data_packets']} packets of values")
        print(f"  results that came by multicast              {total['multicast_results']} of "
              f"{total['result_packets']}")

    def print_results(self, reports):
        ranks_by_digest = collections.defaultdict(list)
        for rank, path in enumerate(self.outputs):
            ranks_by_digest[hashlib.sha256(path.read_bytes()).hexdigest()].append(str(rank))
        identical = len(ranks_by_digest) == 1
        right = all(report["checked"] == report["operations"] for report in reports)
        print(f"  results are identical on all ranks          {verdict(identical)}")
        print(f"  and equal a slow recomputation bit by bit   {verdict(right)}")
        for digest, ranks in ranks_by_digest.items():
            print(f"  SHA-256, ranks {' '.join(ranks)}  {digest}")
        print(flush=True)
        return identical and right

    def print_report(self, reports):
        """Errors beside theory, bytes and exponents, by the tool for that."""
        subprocess.run(
            [self.lab.build / "tools" / "natagg-report", "--inputs", *self.inputs,
             "--result", self.outputs[0], "--values", str(reports[0]["values_per_packet"]),
             "--sent", str(max(report["bytes_sent"] for report in reports)),
             "--received", str(max(report["bytes_received"] for report in reports))],
            stdin=subprocess.DEVNULL, timeout=COMMAND_LIMIT, check=True)


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
