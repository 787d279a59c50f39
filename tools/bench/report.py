# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""The measurements that docs/performance.md shows, and the page's part that they make."""

import dataclasses

import pictures
from figures import NOISY
from machine import machine_text
from points import Network, parse_size, size_text
from tables import NETWORK, best, key, measured, network_text, seconds_text

BEGIN = "<!-- results: begin -->"
END = "<!-- results: end -->"

LIBRARIES = ("natagg", "gloo", "mpi-tcp")
# The tables' columns beside natagg over UDP, where there is anything to show.
PEERS = {"gloo": "Gloo", "torch": "PyTorch", "mpi-tcp": "Open MPI, TCP"}  # over the network, too
OTHERS = {"natagg-ethdev": "natagg, DPDK", "natagg-memif": "natagg, shared memory",
          "mpi-shm": "Open MPI, shared memory"}


@dataclasses.dataclass(frozen=True)
class Suite:
    networks: tuple
    sizes: tuple
    backends: tuple
    overrides: dict  # of the options
    share: float  # of the time budget that is used up at its end


def _sizes(text):
    return tuple(parse_size(part) for part in text.split(","))


# The slow links take seconds for long tensors: there each library shows its algorithms at 10 MB and
# its best one at 100 MB, and with losses.
_SLOW = {"seconds": 1, "least": 3, "limit": 75, "try_within": 1.2}
_BOTH = _sizes("10MB,100MB")

SUITES = (
    Suite(tuple(Network(world, mtu=9000) for world in (4, 8, 2, 16, 1)),
          _sizes("1v,256v,10KB,100KB,1MB,10MB,100MB"),
          (*LIBRARIES, "natagg-memif", "mpi-shm", "udp"),
          {"seconds": 0.5, "least": 5, "limit": 30}, 0.48),
    Suite(tuple(Network(world, mtu=9000) for world in (4, 8)), _sizes("1MB,100MB"),
          ("torch", "natagg-ethdev"), {"seconds": 0.5, "least": 5, "limit": 30}, 0.52),
    Suite((Network(8, mtu=1500, rate=200e6),), _BOTH, LIBRARIES, _SLOW, 0.74),
    Suite((Network(8, mtu=1500, rate=200e6, aggregators=8),), _BOTH, ("natagg",), _SLOW, 0.78),
    Suite(tuple(Network(8, mtu=1500, rate=200e6, loss=loss) for loss in (0.001, 0.01)),
          _sizes("10MB"), LIBRARIES, {**_SLOW, "seconds": 2}, 0.88),
    Suite((Network(8, mtu=9000, rate=1e9),), _BOTH, LIBRARIES, _SLOW, 0.95),
    Suite((Network(4, mtu=1500, rate=200e6),), _sizes("10MB"), LIBRARIES, _SLOW, 1),
)


def measure(runner):
    for suite in SUITES:
        runner.measure(suite.networks, suite.sizes, suite.backends, suite.overrides, suite.share)


def _cell(result):
    if result is None:
        return "-"
    noisy = "~" if result["noisy"] else ""
    algorithm = "" if result["backend"].startswith("natagg") or result["algorithm"] == "default" else \
        f" ({result['algorithm']})"
    return f"{noisy}{result['bandwidth_MBps']:.4g}{algorithm}"


def _ratio(natagg, peers):
    rivals = [peer for peer in peers if peer]
    if not natagg or not rivals:
        return "-"
    fastest = max(peer["bandwidth_MBps"] for peer in rivals)
    return f"{natagg['bandwidth_MBps'] / fastest:.2f}"


def _loss_cell(natagg, clean):
    if not natagg or not clean:
        return "-"
    return f"{natagg['median_s'] / clean['median_s']:.3f}"


def _cpu(natagg, peers):
    texts = [f"{natagg['worker_cpu_ns_per_byte']:.2f} + "
             f"{natagg['aggregator_cpu_ns_per_byte']:.2f}"] if natagg else ["-"]
    return texts + [f"{peer['worker_cpu_ns_per_byte']:.2f}" if peer else "-" for peer in peers]


def _network_table(results, clean):
    """Markdown: a row a size. `clean` has results of the same links without losses."""
    winners = best(results)
    first = results[0]
    shown = {result["backend"] for result in measured(results)}
    peers = {name: label for name, label in PEERS.items() if name in shown}
    others = {name: label for name, label in OTHERS.items() if name in shown}
    head = ["tensor", "natagg", *peers.values(), *others.values()]
    head += ["natagg, of the links' payload"] if first["rate_bps"] else []
    head += ["natagg's time / without loss"] if first["loss"] else []
    head += ["natagg / best over TCP", "CPU: natagg", *peers.values()]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    points = dict.fromkeys(key(result) for result in measured(results))
    for point in sorted(points, key=lambda point: point[-2]):
        natagg = winners.get((point, "natagg"))
        rivals = [winners.get((point, name)) for name in peers]
        cells = [size_text(point[-2]), _cell(natagg), *(_cell(rival) for rival in rivals)]
        cells += [_cell(winners.get((point, name))) for name in others]
        if first["rate_bps"]:
            cells.append(f"{natagg['payload_share'] * 100:.1f} %" if natagg else "-")
        if first["loss"]:
            cells.append(_loss_cell(natagg, clean.get((point, "natagg"))))
        cells += [_ratio(natagg, rivals), *_cpu(natagg, rivals)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _round_trip(results):
    """Lines about one packet, if that was measured."""
    trips = {result["bytes"]: result for result in measured(results) if result["backend"] == "udp"}
    lines = []
    for result in measured(results):
        trip = trips.get(result["bytes"])
        if trip and result["backend"] == "natagg":
            mark = "~" if trip["noisy"] or result["noisy"] else ""
            lines.append(f"{size_text(result['bytes'])}: {mark}{seconds_text(result['median_s'])} by "
                         f"natagg, {seconds_text(trip['median_s'])} for a bare UDP round trip of a "
                         f"packet as long ({result['median_s'] / trip['median_s']:.2f} times).\n")
    return lines


def _without_loss(results):
    """best() of the networks without loss, under their lossy twins' keys."""
    clean = {}
    losses = {result["loss"] for result in results}
    for result in best(results).values():
        if result["loss"] == 0:
            for loss in losses:
                clean[key({**result, "loss": loss}), result["backend"]] = result
    return clean


def page(results, where, images, command):
    """The part of docs/performance.md between BEGIN and END."""
    noisy = sum(result["noisy"] for result in measured(results))
    lines = [BEGIN, "", f"Made by `{command}`; everything is in "
             "[performance/results.txt](performance/results.txt), `.csv` and `.json`.", "",
             "    " + machine_text(where).replace("\n", "\n    "), "",
             "MB/s of each worker's float32 tensor by each library's best algorithm, and CPU time in ns "
             "a byte of the", "workers' tensors (natagg: workers + aggregators). "
             f"{noisy} of {len(measured(results))} runs were noisy (others used more than "
             f"{NOISY * 100:.0f} %", "of the machine): ~ and hollow points mark their figures.", ""]
    clean = _without_loss(results)
    networks = {}
    for result in results:
        networks.setdefault(key(result, NETWORK), []).append(result)
    for group in networks.values():
        if measured(group):
            lines += [f"### {network_text(group[0])}", "", *_network_table(group, clean), "",
                      *_round_trip(group)]
    lines += [f"![{title}](performance/{path.name})\n" for title, path in images]
    return "\n".join([*lines, END])


def write(results, where, directory, command):
    """Pictures in directory/performance, and the part of directory/performance.md."""
    images = pictures.write(results, directory / "performance")
    path = directory / "performance.md"
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    path.write_text(before + page(results, where, images, command) + after, encoding="utf-8")
