# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""The results as SVG: bandwidth over size, and bars at the largest size."""

import math
from xml.sax.saxutils import escape

from points import size_text
from tables import best, key, measured, network_text

_LOOKS = {  # colour, dashes, name
    "natagg": ("#00745a", "", "natagg"),
    "natagg-memif": ("#00745a", "5 4", "natagg, shared memory (no network)"),
    "natagg-ethdev": ("#00745a", "1 3", "natagg, DPDK"),
    "gloo": ("#c2410c", "", "Gloo"),
    "torch": ("#c2410c", "5 4", "PyTorch"),
    "mpi-tcp": ("#2f5fa8", "", "Open MPI, TCP"),
    "mpi-shm": ("#6b7280", "5 4", "Open MPI, shared memory (no network)"),
}
_LINKS = ("mtu", "rate_bps", "loss", "aggregators", "tensors")
_PANEL = (400, 300)
_MARGIN = (64, 46, 32, 42)  # left, top, right, bottom of a panel


class _Svg:
    def __init__(self, width, height, title):
        self._size = (width, height)
        self._parts = [
            f'<title>{escape(title)}</title>',
            '<rect width="100%" height="100%" fill="#ffffff"/>']

    def line(self, x1, y1, x2, y2, colour="#d1d5db"):
        self._parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
                           f'stroke="{colour}"/>')

    def path(self, points, colour, dashes, width):
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._parts.append(f'<polyline points="{places}" fill="none" stroke="{colour}" '
                           f'stroke-width="{width}" stroke-dasharray="{dashes or "none"}" '
                           'stroke-linejoin="round"/>')

    def dot(self, x, y, colour, hollow):
        """Hollow where others disturbed the run."""
        self._parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" stroke="{colour}" '
                           f'fill="{"#ffffff" if hollow else colour}"/>')

    def box(self, x, y, width, height, colour):
        self._parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
                           f'height="{height:.1f}" fill="{colour}"/>')

    def text(self, x, y, text, anchor="middle", size=12, weight="normal", turn=0):
        turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
        self._parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
                           f'font-size="{size}" font-weight="{weight}"{turned}>'
                           f'{escape(text)}</text>')

    def legend(self, backends, x, y):
        for backend in backends:
            colour, dashes, name = _LOOKS[backend]
            self.path([(x, y - 4), (x + 26, y - 4)], colour, dashes, 3)
            self.text(x + 32, y, name, anchor="start")
            x += 56 + 6.4 * len(name)

    def __str__(self):
        width, height = self._size
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
                f'width="{width}" height="{height}" font-family="sans-serif" fill="#111827">\n' +
                "\n".join(self._parts) + "\n</svg>\n")


class _LogAxis:
    """From pixels `start` to `end`."""

    def __init__(self, values, start, end):
        self._low, self._high = math.log10(min(values)), math.log10(max(values))
        if self._high - self._low < 0.1:
            self._low, self._high = self._low - 0.5, self._high + 0.5
        self._start, self._end = start, end

    def __call__(self, value):
        share = (math.log10(value) - self._low) / (self._high - self._low)
        return self._start + share * (self._end - self._start)

    def decades(self):
        return [10.0 ** power for power in
                range(math.ceil(self._low - 1e-9), math.floor(self._high + 1e-9) + 1)]


def _number(value):
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def link_groups(results):
    """The measured results by all that is the same in one picture: links and aggregators."""
    groups = {}
    for result in measured(results):
        if result["backend"] not in _LOOKS:
            continue  # no all-reduce
        groups.setdefault(key(result, _LINKS), []).append(result)
    return groups


def _links_text(result):
    return network_text(result).split(", ", 1)[1]


def _backends(results):
    present = {result["backend"] for result in results}
    return [backend for backend in _LOOKS if backend in present]


def bandwidth(results):
    """Of one group: a panel a number of workers, with a curve a library by its best algorithm."""
    winners = list(best(results).values())
    worlds = sorted({result["world"] for result in winners})
    columns = min(len(worlds), 3)
    rows = math.ceil(len(worlds) / columns)
    width, height = max(_PANEL[0] * columns, 940), 64 + _PANEL[1] * rows
    svg = _Svg(width, height, "Bandwidth of an all-reduce over the size of the tensor")
    svg.text(16, 24, f"All-reduce, {_links_text(winners[0])}: MB/s of each worker's tensor",
             anchor="start", size=15, weight="bold")
    svg.legend(_backends(winners), 16, 48)
    sizes = [result["bytes"] for result in winners]
    speeds = [result["bandwidth_MBps"] for result in winners]
    for number, world in enumerate(worlds):
        left = _PANEL[0] * (number % columns)
        top = 64 + _PANEL[1] * (number // columns)
        _panel(svg, (left, top), sizes, speeds,
               [result for result in winners if result["world"] == world], world)
    return str(svg)


def _panel(svg, corner, sizes, speeds, winners, world):
    left, top = corner[0] + _MARGIN[0], corner[1] + _MARGIN[1] - 20
    right, bottom = corner[0] + _PANEL[0] - _MARGIN[2], corner[1] + _PANEL[1] - _MARGIN[3]
    across, up = _LogAxis(sizes, left, right), _LogAxis(speeds, bottom, top)
    svg.text((left + right) / 2, top - 8, f"{world} workers" if world > 1 else "1 worker",
             weight="bold")
    for speed in up.decades():
        svg.line(left, up(speed), right, up(speed))
        svg.text(left - 6, up(speed) + 4, f"{speed:g}", anchor="end")
    for size in across.decades():
        svg.line(across(size), top, across(size), bottom)
        svg.text(across(size), bottom + 17,
                 size_text(round(size)) if size >= 1000 else f"{size:g}B", size=11)
    svg.line(left, bottom, right, bottom, "#6b7280")
    svg.line(left, top, left, bottom, "#6b7280")
    svg.text((left + right) / 2, bottom + 34, "bytes of a tensor", size=11)
    svg.text(corner[0] + 16, (top + bottom) / 2, "MB/s", size=11, turn=-90)
    for backend in reversed(_backends(winners)):  # natagg's is on top
        colour, dashes, _ = _LOOKS[backend]
        curve = sorted((result for result in winners if result["backend"] == backend),
                       key=lambda result: result["bytes"])
        places = [(across(result["bytes"]), up(result["bandwidth_MBps"])) for result in curve]
        svg.path(places, colour, dashes, 3 if backend == "natagg" else 2)
        for (x, y), result in zip(places, curve):
            svg.dot(x, y, colour, result["noisy"])


def bars(results):
    """Of one group, at the largest size that was measured: a bar a library, by numbers of
    workers."""
    size = max(result["bytes"] for result in results)
    winners = [result for result in best(results).values() if result["bytes"] == size]
    worlds = sorted({result["world"] for result in winners})
    backends = _backends(winners)
    bar, gap = 58, 40
    width = max(_MARGIN[0] + sum(
        gap + bar * sum(result["world"] == world for result in winners) for world in worlds) + gap,
        940)
    top, bottom, height = 92, 330, 392
    svg = _Svg(width, height, f"All-reduce of {size_text(size)}")
    svg.text(16, 24, f"All-reduce of {size_text(size)}, {_links_text(winners[0])}: MB/s of each "
             "worker's tensor", anchor="start", size=15, weight="bold")
    svg.legend(backends, 16, 48)
    most = max(result["bandwidth_MBps"] for result in winners)
    left = _MARGIN[0] + gap / 2
    for world in worlds:
        here = sorted((result for result in winners if result["world"] == world),
                      key=lambda result: backends.index(result["backend"]))
        svg.text(left + bar * len(here) / 2, bottom + 48, f"{world} workers" if world > 1 else
                 "1 worker", weight="bold")
        for result in here:
            tall = (bottom - top) * result["bandwidth_MBps"] / most
            svg.box(left + 4, bottom - tall, bar - 8, tall, _LOOKS[result["backend"]][0])
            noisy = "~" if result["noisy"] else ""
            svg.text(left + bar / 2, bottom - tall - 6, noisy + _number(result["bandwidth_MBps"]),
                     weight="bold")
            svg.text(left + bar / 2, bottom + (14 if here.index(result) % 2 == 0 else 27),
                     result["algorithm"], size=9)
            left += bar
        left += gap
    svg.line(_MARGIN[0] - 10, bottom, width - 20, bottom, "#6b7280")
    return str(svg)


def write(results, directory):
    """bandwidth-N.svg of those links where there are curves, and bars-N.svg of those where there is
    a comparison; returns [(links, path), ...]."""
    written = []
    for number, group in enumerate(link_groups(results).values(), 1):
        drawings = []
        if len({result["bytes"] for result in group}) > 2:
            drawings.append(("bandwidth", bandwidth))
        if len(_backends(group)) > 1:
            drawings.append(("bars", bars))
        for name, draw in drawings:
            path = directory / f"{name}-{number}.svg"
            path.write_text(draw(group), encoding="utf-8")
            written.append((_links_text(group[0]), path))
    return written
