# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""natagg-bench's options and its course."""

import argparse
import itertools
import json
import sys
from pathlib import Path

import isolation
from backends import BACKENDS
from load import ForeignLoad
from machine import machine, machine_text
from natagg_lab import LabError
import pictures
import report
from points import Network, parse_loss, parse_rate, parse_size
from runner import Runner
from tables import text_table, to_csv

SIZES = "1v,256v,10KB,100KB,1MB,10MB,100MB"


def _list(convert):
    def parse(text):
        try:
            return [convert(part) for part in text.split(",")]
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    return parse


def _backend(text):
    if text not in BACKENDS:
        raise ValueError(f"{text!r} is none of {', '.join(BACKENDS)}")
    return text


def parse(root, about, arguments):
    parser = argparse.ArgumentParser(
        prog="natagg-bench", description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--aggregators", type=int, default=1, metavar="N",
        help="their links are together as fast as the workers'")
    add("--backends", type=_list(_backend), default=list(BACKENDS), metavar="NAME,...",
        help=f"of {', '.join(BACKENDS)}")
    add("--budget", type=float, default=900, metavar="S", help="seconds for all of it")
    add("--build", type=Path, default=root / "build", metavar="DIRECTORY", help="a release build")
    add("--busy-poll", type=int, default=0, metavar="US",
        help="for how long natagg's workers look for packets before they sleep")
    add("--driver", choices=("af_packet", "af_xdp"), default="af_packet",
        help="of the aggregators' interfaces")
    add("--format", choices=("text", "csv", "json"), default="text", help="of standard output")
    add("--idle", choices=("polite", "poll"), default="polite", help="as the daemon's option")
    add("--io-threads", type=int, default=1, metavar="N", help="of each of natagg's workers")
    add("--least", type=int, default=5, metavar="N", help="operations a point")
    add("--limit", type=float, default=120, metavar="S", help="seconds for one run of one library")
    add("--loss", type=_list(parse_loss), default=[0], metavar="P,...",
        help="share of packets lost on a path, each way: 0.1%%")
    add("--mtu", type=_list(int), default=[1500], metavar="N,...")
    add("--no-gso", dest="gso", action="store_false",
        help="natagg's workers send and receive every packet by itself")
    add("--output", type=Path, metavar="DIRECTORY",
        help="for results.txt, results.csv and results.json")
    add("--rate", type=_list(parse_rate), default=[0], metavar="RATE,...",
        help="of a worker's link, each way: 200Mbit; 0: no limit")
    add("--repeat", type=int, default=1, metavar="N", help="runs of each point")
    add("--report", type=Path, metavar="DOCS",
        help="measure what DOCS/performance.md shows, and write it there; most options do not count")
    add("--retry-noisy", type=int, default=0, metavar="N",
        help="measure up to N times more what others' load has disturbed, and keep the quietest")
    add("--seconds", type=float, default=1, metavar="S", help="to measure a point for")
    add("--shards", type=int, default=1, metavar="N", help="of each aggregator")
    add("--sizes", type=_list(parse_size), default=parse_sizes(SIZES), metavar="SIZE,...",
        help=f"of a tensor: 100MB, or 256v for 256 values (default {SIZES})")
    add("--svg", action="store_true", help="write pictures, too, to --output")
    add("--tensors", type=int, default=1, metavar="T",
        help="handed over together, as one operation")
    add("--try-within", type=float, default=2, metavar="X",
        help="leave out an algorithm X times slower than its library's best at a size from 1 MB on")
    add("--window", type=int, default=0, metavar="N", help="natagg's; 0: its default")
    add("--worlds", type=_list(int), default=[1, 2, 4, 8, 16], metavar="N,...",
        help="numbers of workers")
    options = parser.parse_args(arguments)
    if options.svg and not options.output:
        parser.error("--svg needs --output")
    options.scratch = options.build / "bench-lab"
    if not (options.build / "tools" / "bench").is_dir():
        parser.error(f"{options.build} has no tools/bench: build natagg there")
    return options


parse_sizes = _list(parse_size)


def main(root, about, arguments=None):
    options = parse(root, about, arguments)
    if options.report:
        options.report = options.report.resolve()
        options.output = options.report / "performance"
        options.retry_noisy = max(options.retry_noisy, 1)
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        options.output = options.output.resolve()
    load = ForeignLoad()
    where = machine(root)
    isolation.isolate(options.scratch)
    runner = Runner(options, load)
    failure = None
    try:
        if options.report:
            report.measure(runner)
        else:
            runner.measure(_networks(options), options.sizes, options.backends)
    except LabError as error:
        failure = error
    # What has been measured is not lost because of what has not.
    _write(options, where, runner.results)
    if failure:
        sys.exit(f"natagg-bench: {failure}")
    return 1 if any("error" in result for result in runner.results) else 0


def _networks(options):
    return [Network(world, mtu, rate, loss, options.aggregators)
            for mtu, rate, loss, world in itertools.product(
                options.mtu, options.rate, options.loss, options.worlds)]


def _write(options, where, results):
    texts = {
        "text": f"{machine_text(where)}\n\n{text_table(results)}\n",
        "csv": to_csv(results),
        "json": json.dumps({"machine": where, "results": results}, indent=1) + "\n"}
    print(texts[options.format], end="")
    if options.output:
        for kind, suffix in (("text", "txt"), ("csv", "csv"), ("json", "json")):
            (options.output / f"results.{suffix}").write_text(texts[kind], encoding="utf-8")
    if options.report:
        report.write(results, where, options.report, "tools/natagg-bench --report docs")
    elif options.svg:
        pictures.write(results, options.output)
