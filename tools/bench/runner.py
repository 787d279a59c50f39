# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""Measures points one after another, as far as the time goes."""

import argparse
import itertools
import shutil
import sys
import time

from backends import BACKENDS, RunFailed, Settings
from figures import NOISY, figures
from natagg_lab import Lab
from points import Point, size_text

# From this size on, an algorithm's time tells whether to try it with longer tensors.
_TELLING = 1_000_000  # bytes

_START_SECONDS = 2.0  # until a run has begun
_LATENCY_BOUND = 100_000  # bytes; up to there, the time of an operation does not grow with them


class Progress:
    """One line on a terminal, and nothing elsewhere."""

    def __init__(self):
        self._shown = sys.stderr.isatty()

    def show(self, text):
        if self._shown:
            columns = shutil.get_terminal_size().columns - 1
            print(f"\r\033[K{text[:columns]}", end="", file=sys.stderr, flush=True)

    def end(self):
        self.show("")


class Runner:
    """`results` has a dictionary for each run: the point, the library and its algorithm, and either
    figures, "error" or "skipped"."""

    def __init__(self, options, load):
        self._options = options
        self._load = load
        self._progress = Progress()
        self._deadline = time.monotonic() + options.budget
        self._runs = 0
        self._failed = set()  # (network, backend, variant)
        self._last = {}  # (network, backend, variant): (size, seconds of an operation)
        self.results = []

    def measure(self, networks, sizes, backends, overrides=None):
        """`overrides` replace options."""
        given, self._options = self._options, argparse.Namespace(
            **{**vars(self._options), **(overrides or {})})
        for network in networks:
            with Lab(self._options.build, self._options.scratch, network.aggregators,
                     network.world, network.mtu, network.worker_link,
                     network.aggregator_link) as lab:
                for size, backend in itertools.product(sorted(sizes), backends):
                    self._measure_point(lab, Point(network, size, self._options.tensors),
                                        BACKENDS[backend])
        self._options = given
        self._progress.end()

    def _measure_point(self, lab, point, backend):
        if not backend.applies(point):
            return
        if not backend.available(lab):
            self._record(point, backend, "", skipped="not built: see scripts/install-packages --bench")
            return
        for variant in backend.variants:
            reason = self._reason_to_skip(point, backend, variant)
            if reason:
                self._record(point, backend, variant, skipped=reason)
            else:
                for _ in range(self._options.repeat):
                    self._measure_variant(lab, point, backend, variant)

    def _reason_to_skip(self, point, backend, variant):
        mine = self._last.get((point.network, backend.name, variant))
        if (point.network, backend.name, variant) in self._failed:
            return "it has failed at a smaller size"
        best = min((seconds for (network, name, _), (size, seconds) in self._last.items()
                    if mine and (network, name) == (point.network, backend.name) and
                    size == mine[0]), default=0)
        if mine and mine[0] >= _TELLING and mine[1] > self._options.try_within * best:
            return (f"{mine[1] / best:.1f} times slower than this library's best at "
                    f"{size_text(mine[0])}")
        if self._estimate(point, mine) > self._deadline - time.monotonic():
            return "the time budget is used up"
        return None

    def _estimate(self, point, mine):
        """Seconds of a run: an operation whose values are checked, a lead-in, and those that
        count."""
        if mine is None:
            return _START_SECONDS
        operation = mine[1] * max(point.size / max(mine[0], _LATENCY_BOUND), 1)
        return _START_SECONDS + operation * 2 + max(self._options.seconds,
                                                    operation * self._options.least)

    def _measure_variant(self, lab, point, backend, variant):
        """The quietest of as many runs as are allowed for want of quiet."""
        key = (point.network, backend.name, variant)
        quietest = None
        for _ in range(1 + self._options.retry_noisy):
            try:
                result = self._run(lab, point, backend, variant)
            except RunFailed as failure:
                if quietest is None:
                    self._failed.add(key)
                    self._record(point, backend, variant, error=str(failure))
                    return
                break
            if quietest is None or result["foreign_load"] < quietest["foreign_load"]:
                quietest = result
            self._last[key] = (point.size, quietest["median_s"])
            if not quietest["noisy"] or self._reason_to_skip(point, backend, variant):
                break
        self._record(point, backend, variant, **quietest)

    def _run(self, lab, point, backend, variant):
        self._runs += 1
        left = self._deadline - time.monotonic()
        self._progress.show(f"{left:4.0f} s left  {point.text()}: {backend.label} {variant}")
        scratch = lab.scratch / f"run{self._runs}"
        scratch.mkdir()
        settings = Settings(self._options.seconds, self._options.least, self._options.limit,
                            self._options.shards, self._options.idle, self._options.window)
        self._load.begin()
        try:
            reports, counters = backend.run(lab, point, variant, settings, scratch)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        foreign = self._load.share()
        return {**figures(point, backend.name, reports, counters), "foreign_load": foreign,
                "noisy": foreign > NOISY}

    def _record(self, point, backend, variant, **more):
        network = point.network
        self.results.append({
            "backend": backend.name, "algorithm": variant, "world": network.world,
            "mtu": network.mtu, "rate_bps": network.rate, "loss": network.loss,
            "aggregators": network.aggregators, "bytes": point.size, "tensors": point.tensors,
            **more})
