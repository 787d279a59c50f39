# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""From the ranks' reports to the figures of a point."""

import math

from points import VALUE_BYTES

NOISY = 0.10  # share of the machine that others used
MOST_TIMES = 100  # of single operations in a result

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


def lead_in_seconds(reports):
    """Of the first operation of each row, which is not counted: from the first rank's start."""
    return [(max(row[1] for row in rows) - min(row[0] for row in rows)) * 1e-9
            for rows in zip(*(report["rows"] for report in reports))]


def _grown(reports, name):
    return sum(report["after"].get(name, 0) - report["before"].get(name, 0) for report in reports)


def _payload_share(point, backend, reports, seconds):
    """Of what a worker's link carries of payload, what an operation took in the busier direction:
    a byte a value of natagg; of the others what an all-reduce of floats takes at least."""
    network = point.network
    if backend.startswith("natagg"):
        last = reports[0]["after"]
        payload = point.bytes / VALUE_BYTES
        efficiency = last["values_per_packet"] / last["frame_bytes"]
    else:
        payload = 2 * (network.world - 1) / network.world * point.bytes
        efficiency = (network.mtu - _TCP_IP) / (network.mtu + _ETHERNET)
    return payload * 8 / seconds / (network.rate * efficiency)


def figures(point, backend, reports, counters):
    """Everything about one run, as JSON says it."""
    times_in_order = operation_seconds(reports)
    times = sorted(times_in_order)
    median = percentile(times, 0.5)
    operations = reports[0]["operations"]
    all_bytes = operations * point.bytes * point.network.world
    result = {
        "operations": len(times),
        "median_s": median,
        "p10_s": percentile(times, 0.1),
        "p90_s": percentile(times, 0.9),
        "p99_s": percentile(times, 0.99),
        "fastest_s": times[0],
        "slowest_s": times[-1],
        "bandwidth_MBps": point.bytes / median / 1e6,
        "worker_cpu_ns_per_byte": sum(report["cpu_ns"] for report in reports) / all_bytes,
        "aggregator_cpu_ns_per_byte": sum(reports[0]["watched_cpu_ns"]) / all_bytes,
        "sent_bytes_per_operation": max(report["sent_bytes"] for report in reports) / operations,
        "received_bytes_per_operation":
            max(report["received_bytes"] for report in reports) / operations,
        "retransmissions": _grown(reports, "retransmissions") +
            sum(report["tcp_retransmissions"] for report in reports),
    }
    if point.network.rate:
        wire = max(result["sent_bytes_per_operation"], result["received_bytes_per_operation"])
        result["link_share"] = wire * 8 / median / point.network.rate
        result["payload_share"] = _payload_share(point, backend, reports, median)
    if backend.startswith("natagg"):
        last = reports[0]["after"]
        result |= {name: _grown(reports, name) for name in
                   ("data_packets", "result_packets", "multicast_results", "duplicate_results",
                    "kernel_drops", "send_failures")}
        result |= {name: last[name] for name in
                   ("values_per_packet", "window", "shards", "packets_in_flight")}
        result["aggregator_missed"] = sum(c["missed"] for c in counters)
    result["times_s"] = [round(seconds, 9) for seconds in times_in_order[:MOST_TIMES]]
    result["lead_ins_s"] = [round(seconds, 9) for seconds in lead_in_seconds(reports)[:MOST_TIMES]]
    return result
