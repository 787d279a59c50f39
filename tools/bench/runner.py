# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""Measures points one after another, as far as the time goes."""

import argparse
import dataclasses
import itertools
import shutil
import sys
import time

from backends import BACKENDS, NataggSettings, RunFailed, Settings
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
        self._begin = time.monotonic()
        self._deadline = self._begin + options.budget
        self._runs = 0
        self._failed = set()  # (network, backend, variant)
        self._times = {}  # (network, backend, variant): {size: seconds of an operation}
        self.results = []

    def measure(self, networks, sizes, backends, overrides=None, share=1):
        """`overrides` replace options. It may take so long that, with all before it, `share` of
        the time budget is used up."""
        self._deadline = self._begin + self._options.budget * share
        given, self._options = self._options, argparse.Namespace(
            **{**vars(self._options), **(overrides or {})})
        for network in networks:
            with Lab(self._options.build, self._options.scratch, network.aggregators,
                     network.world, network.mtu, network.worker_link,
                     network.aggregator_link) as lab:
                for aggregator in lab.aggregators:
                    lab.cut_up(aggregator)
                for size, backend in itertools.product(sorted(sizes), backends):
                    self._measure_point(lab, Point(network, size, self._options.tensors),
                                        BACKENDS[backend])
        self._options = given
        self._progress.end()

    def _measure_point(self, lab, point, backend):
        if not backend.applies(point):
            return
        if not backend.available(lab):
            self._record(point, backend, "", skipped=f"not built: see scripts/install-packages {backend.packages}, and "
                                 "build in a new directory")
            return
        for variant in backend.variants:
            reason = self._reason_to_skip(point, backend, variant)
            if reason:
                self._record(point, backend, variant, skipped=reason)
            else:
                for _ in range(self._options.repeat):
                    self._measure_variant(lab, point, backend, variant)

    def _reason_to_skip(self, point, backend, variant):
        if (point.network, backend.name, variant) in self._failed:
            return "it has failed at a smaller size"
        return (self._hopeless(point, backend, variant) or
                ("the time budget is used up" if self._estimate(point, backend, variant) >
                 self._deadline - time.monotonic() else None))

    def _hopeless(self, point, backend, variant):
        """Judged by smaller sizes, and by the same network without losses."""
        lossless = dataclasses.replace(point.network, loss=0)
        for network in dict.fromkeys((point.network, lossless)):
            mine = self._times.get((network, backend.name, variant), {})
            for size in sorted(mine, reverse=True):
                if size < _TELLING or (network == point.network and size >= point.size):
                    continue
                best = min(times[size] for key, times in self._times.items()
                           if key[:2] == (network, backend.name) and size in times)
                if mine[size] > self._options.try_within * best:
                    where = "" if network == point.network else " without losses"
                    return (f"{mine[size] / best:.2f} times as slow as this library's best at "
                            f"{size_text(size)}{where}")
                break
        return None

    def _estimate(self, point, backend, variant):
        """Seconds of a run: an operation whose values are checked, a lead-in, and those that
        count."""
        mine = self._times.get((point.network, backend.name, variant))
        if not mine:
            return _START_SECONDS
        size = max(mine)
        operation = mine[size] * max(point.size / max(size, _LATENCY_BOUND), 1)
        return _START_SECONDS + operation * 2 + max(self._options.seconds,
                                                    operation * self._options.least)

    def _measure_variant(self, lab, point, backend, variant):
        """The quietest of as many runs as are allowed for want of quiet. A failed run, too, gets a
        second chance, and a word in the result."""
        key = (point.network, backend.name, variant)
        quietest, failures = None, []
        for attempt in itertools.count():
            try:
                result = self._run(lab, point, backend, variant)
            except RunFailed as failure:
                failures.append(str(failure))
                if quietest is None and len(failures) < 2:
                    continue
                break
            if quietest is None or result["foreign_load"] < quietest["foreign_load"]:
                quietest = result
            self._times.setdefault(key, {})[point.size] = quietest["median_s"]
            left = self._deadline - time.monotonic()
            if (not quietest["noisy"] or attempt >= self._options.retry_noisy or
                    self._estimate(point, backend, variant) > left):
                break
        if quietest is None:
            self._failed.add(key)
            self._record(point, backend, variant, error=failures[-1])
        elif failures:
            self._record(point, backend, variant, **quietest, failed_before=failures[0])
        else:
            self._record(point, backend, variant, **quietest)

    def _run(self, lab, point, backend, variant):
        self._runs += 1
        left = self._deadline - time.monotonic()
        self._progress.show(f"{left:4.0f} s left  {point.text()}: {backend.label} {variant}")
        scratch = lab.scratch / f"run{self._runs}"
        scratch.mkdir()
        options = self._options
        settings = Settings(options.seconds, options.least, options.limit, NataggSettings(
            options.driver, options.shards, options.idle, options.window, options.busy_poll,
            options.io_threads, options.gso))
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
