# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""Measures points one after another, as far as the time goes."""

import itertools
import shutil
import sys
import time

from backends import BACKENDS, RunFailed, Settings
from figures import NOISY, figures
from natagg_lab import Lab
from points import Point, size_text

# An algorithm that was so much slower than the library's best at this size or above is not tried at
# longer tensors.
_HOPELESS = 2.0
_HOPELESS_FROM = 1_000_000  # bytes

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
        self._last = {}  # (network, backend, variant): (size, seconds of an operation)
        self.results = []

    def measure(self, networks, sizes, backends):
        for network in networks:
            with Lab(self._options.build, self._options.scratch, network.aggregators,
                     network.world, network.mtu, network.worker_link,
                     network.aggregator_link) as lab:
                for size, backend in itertools.product(sorted(sizes), backends):
                    self._measure_point(lab, Point(network, size, self._options.tensors),
                                        BACKENDS[backend])
        self._progress.end()

    def _measure_point(self, lab, point, backend):
        if not backend.available(lab):
            self._record(point, backend, "", skipped="not built: see scripts/install-packages --bench")
            return
        if backend.name == "mpi-shm" and not point.network.worker_link.free:
            return  # it has no links to limit
        if backend.name != "natagg" and point.network.world == 1:
            self._record(point, backend, "", skipped="one rank alone sends nothing")
            return
        for variant in backend.variants:
            reason = self._reason_to_skip(point, backend, variant)
            if reason:
                self._record(point, backend, variant, skipped=reason)
            else:
                for _ in range(self._options.repeat):
                    self._run(lab, point, backend, variant)

    def _reason_to_skip(self, point, backend, variant):
        mine = self._last.get((point.network, backend.name, variant))
        if mine is None:
            known = [last for key, last in self._last.items() if key[:2] == (
                point.network, backend.name)]
            if known and min(size for size, _ in known) < point.size and variant not in (
                    key[2] for key in self._last):
                return "an earlier size of it failed"
        best = min((seconds for (network, name, _), (size, seconds) in self._last.items()
                    if mine and (network, name) == (point.network, backend.name) and
                    size == mine[0]), default=0)
        if mine and mine[0] >= _HOPELESS_FROM and mine[1] > _HOPELESS * best:
            return (f"{mine[1] / best:.1f} times slower than this library's best at "
                    f"{size_text(mine[0])}")
        if self._estimate(point, mine) > self._deadline - time.monotonic():
            return "the time budget is used up"
        return None

    def _estimate(self, point, mine):
        """Seconds of a run: a check, two trial operations, and those that count."""
        if mine is None:
            return _START_SECONDS
        operation = mine[1] * max(point.size / max(mine[0], _LATENCY_BOUND), 1)
        return _START_SECONDS + operation * 3 + max(self._options.seconds,
                                                    operation * (self._options.least + 1))

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
        except RunFailed as failure:
            self._record(point, backend, variant, error=str(failure))
            return
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        result = figures(point, backend.name, reports, counters)
        foreign = self._load.share()
        self._last[(point.network, backend.name, variant)] = (point.size, result["median_s"])
        self._record(point, backend, variant, **result, foreign_load=foreign,
                     noisy=foreign > NOISY)

    def _record(self, point, backend, variant, **more):
        network = point.network
        self.results.append({
            "backend": backend.name, "algorithm": variant, "world": network.world,
            "mtu": network.mtu, "rate_bps": network.rate, "loss": network.loss,
            "aggregators": network.aggregators, "bytes": point.size, "tensors": point.tensors,
            **more})
