# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""The results as a table for people, and as CSV."""

import csv
import io

from points import rate_text, size_text

_HEAD = ("size", "library", "algorithm", "median", "p10", "p90", "MB/s", "link", "payload",
         "slowest", "worker", "aggr.", "again", "missed", "others")

NETWORK = ("world", "mtu", "rate_bps", "loss", "aggregators")
POINT = (*NETWORK, "bytes", "tensors")


def key(result, names=POINT):
    return tuple(result[name] for name in names)


def measured(results):
    return [result for result in results if "median_s" in result]


def best(results):
    """{(point, backend): the result of the algorithm whose median is the least}."""
    winners = {}
    for result in measured(results):
        place = (key(result), result["backend"])
        if place not in winners or result["median_s"] < winners[place]["median_s"]:
            winners[place] = result
    return winners


def seconds_text(seconds):
    for unit, name in ((1, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:.4g} {name}"
    return f"{seconds * 1e6:.4g} us"


def _percent(result, name):
    return f"{result[name] * 100:.1f} %" if name in result else ""


def row(result, best_one):
    """Cells as in _HEAD."""
    high = "p99_s" if result["operations"] >= 200 else "p90_s"
    return (size_text(result["bytes"]), result["backend"],
            result["algorithm"] + (" *" if best_one else ""),
            seconds_text(result["median_s"]), seconds_text(result["p10_s"]),
            seconds_text(result[high]) + ("+" if high == "p99_s" else ""),
            f"{result['bandwidth_MBps']:.4g}", _percent(result, "link_share"),
            _percent(result, "payload_share"), seconds_text(result["slowest_s"]),
            f"{result['worker_cpu_ns_per_byte']:.3g}",
            f"{result['aggregator_cpu_ns_per_byte']:.3g}"
            if result["backend"].startswith("natagg") else "",
            str(result["retransmissions"]), str(result.get("aggregator_missed", "")),
            f"{result['foreign_load'] * 100:.0f} %" + (" noisy" if result["noisy"] else ""))


def network_text(result):
    loss = f", {result['loss'] * 100:.4g} % loss" if result["loss"] else ""
    links = f"{rate_text(result['rate_bps'])}/s a worker" if result["rate_bps"] else \
        "links without limit"
    return (f"{result['world']} workers, MTU {result['mtu']}, {links}{loss}, "
            f"{result['aggregators']} aggregator{'s' if result['aggregators'] != 1 else ''}")


def text_table(results):
    """A table a network, and what is missing under it."""
    winners = best(results)
    parts = []
    for network in dict.fromkeys(key(result, NETWORK) for result in results):
        here = [result for result in results if key(result, NETWORK) == network]
        rows = [_HEAD] + [
            row(result, winners[(key(result), result["backend"])] is result)
            for result in measured(here)]
        widths = [max(len(cells[i]) for cells in rows) for i in range(len(_HEAD))]
        parts.append(network_text(here[0]))
        parts += ["  " + "  ".join(
            cell.ljust(width) if i in (1, 2) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths))).rstrip() for cells in rows]
        parts += [f"  not measured: {size_text(result['bytes'])} {result['backend']} "
                  f"{result['algorithm']}: {result.get('error') or result['skipped']}"
                  for result in here if "median_s" not in result]
        parts += [f"  measured at the second attempt: {size_text(result['bytes'])} "
                  f"{result['backend']} {result['algorithm']}: {result['failed_before']}"
                  for result in here if "failed_before" in result]
        parts.append("")
    parts.append(LEGEND)
    return "\n".join(parts)


LEGEND = """\
*: the library's best at this size. p90: of 200 operations and more the 99th percentile, with a +.
MB/s: bytes of a worker's tensors over the median time. link: bytes on a worker's link, of what it
carries; payload: the same of values alone. worker, aggr.: CPU time in ns a byte of the workers'
tensors. again: packets sent again. missed: packets at the aggregators' interfaces that found their
receive rings full.
others: of the machine, what other processes used; noisy above 10 %."""


def to_csv(results):
    names = list(dict.fromkeys(
        name for result in results for name, value in result.items()
        if not isinstance(value, list)))
    out = io.StringIO()
    writer = csv.DictWriter(out, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(results)
    return out.getvalue()
