# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""From the ranks' reports to the figures of a point."""

import math

from points import VALUE_BYTES

NOISY = 0.10  # share of the machine that others used

# Ethernet, IPv4, and TCP with the option of time stamps.
_ETHERNET = 14
_TCP_IP = 20 + 32


def percentile(ordered, share):
    """Of sorted numbers; the nearest there is."""
    return ordered[min(math.ceil(share * len(ordered)), len(ordered)) - 1 if share > 0 else 0]


def operation_seconds(reports):
    """Of each counted operation: from the last rank's completion of the one before to the last
    rank's of this one."""
    times = []
    for rows in zip(*(report["rows"] for report in reports)):
        completions = [max(stamps) for stamps in zip(*rows)][1:]  # without the starts
        times += [(b - a) * 1e-9 for a, b in zip(completions, completions[1:])]
    return times


def _row_seconds(reports):
    """All rows together, with their lead-ins."""
    return sum((max(row[-1] for row in rows) - min(row[0] for row in rows)) * 1e-9
               for rows in zip(*(report["rows"] for report in reports)))


def _grown(reports, name):
    return sum(report["after"].get(name, 0) - report["before"].get(name, 0) for report in reports)


def _payload_share(point, backend, reports, operations, seconds):
    """Of what a worker's link carries of payload, what the operation took in the busier direction:
    a byte a value of natagg; of the others what an all-reduce of floats takes at least."""
    network = point.network
    if backend == "natagg":
        last = reports[0]["after"]
        payload = point.bytes / VALUE_BYTES
        efficiency = last["values_per_packet"] / last["frame_bytes"]
    else:
        payload = 2 * (network.world - 1) / network.world * point.bytes
        efficiency = (network.mtu - _TCP_IP) / (network.mtu + _ETHERNET)
    return payload * 8 * operations / seconds / (network.rate * efficiency)


def figures(point, backend, reports, counters):
    """Everything about one run, as JSON says it."""
    times = sorted(operation_seconds(reports))
    operations = reports[0]["operations"]
    all_bytes = operations * point.bytes * point.network.world
    seconds = _row_seconds(reports)
    result = {
        "operations": len(times),
        "median_s": percentile(times, 0.5),
        "p10_s": percentile(times, 0.1),
        "p90_s": percentile(times, 0.9),
        "p99_s": percentile(times, 0.99),
        "fastest_s": times[0],
        "bandwidth_MBps": point.bytes / percentile(times, 0.5) / 1e6,
        "worker_cpu_ns_per_byte": sum(report["cpu_ns"] for report in reports) / all_bytes,
        "aggregator_cpu_ns_per_byte": sum(reports[0]["watched_cpu_ns"]) / all_bytes,
        "sent_bytes_per_operation": max(report["sent_bytes"] for report in reports) / operations,
        "received_bytes_per_operation":
            max(report["received_bytes"] for report in reports) / operations,
        "retransmissions": _grown(reports, "retransmissions") +
            sum(report["tcp_retransmissions"] for report in reports),
    }
    if point.network.rate:
        wire = max(max(report["sent_bytes"], report["received_bytes"]) for report in reports)
        result["link_share"] = wire * 8 / seconds / point.network.rate
        result["payload_share"] = _payload_share(point, backend, reports, operations, seconds)
    if backend == "natagg":
        last = reports[0]["after"]
        result |= {name: _grown(reports, name) for name in
                   ("data_packets", "result_packets", "multicast_results", "duplicate_results",
                    "kernel_drops", "send_failures")}
        result |= {name: last[name] for name in
                   ("values_per_packet", "window", "shards", "packets_in_flight")}
        result["device_rx_missed"] = sum(c.get("device_rx_missed", 0) for c in counters)
    return result
