# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""What is measured: networks, and points in them."""

import dataclasses
import re

from links import Link

VALUE_BYTES = 4  # float32

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20}
_RATES = {"": 1, "KBIT": 10**3, "MBIT": 10**6, "GBIT": 10**9}


def _number(text, units, what):
    match = re.fullmatch(r"([0-9.]+)\s*([a-zA-Z]*)", text.strip())
    if not match or match.group(2).upper() not in units:
        raise ValueError(f"{text!r} is no {what}")
    return float(match.group(1)) * units[match.group(2).upper()]


def parse_size(text):
    """Bytes of "100MB", "4KiB", or "1v", which is one value."""
    if re.fullmatch(r"\d+v", text.strip()):
        return int(text.strip()[:-1]) * VALUE_BYTES
    size = round(_number(text, _UNITS, "size, such as 100MB or 256v"))
    if size < VALUE_BYTES or size % VALUE_BYTES:
        raise ValueError(f"{text} is no whole number of float32")
    return size


def parse_rate(text):
    """Bit/s of "200Mbit"."""
    return _number(text, _RATES, "rate, such as 200Mbit")


def parse_loss(text):
    """The share that "0.1%" or "0.001" is."""
    text = text.strip()
    share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    if not 0 <= share < 1:
        raise ValueError(f"{text} is no share of packets")
    return share


def size_text(size):
    """As parse_size() takes it, but for rounding."""
    if size < 1000 or (size < 10_000 and size % 1000):
        return f"{size // VALUE_BYTES}v"
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "KB")):
        if size >= unit:
            return f"{size / unit:.4g}{name}"
    return str(size)


def rate_text(rate):
    if not rate:
        return "free"
    return f"{rate / 1e9:.4g}Gbit" if rate >= 1e9 else f"{rate / 1e6:.4g}Mbit"


@dataclasses.dataclass(frozen=True)
class Network:
    """Workers and aggregators on one switch."""

    world: int
    mtu: int = 1500
    rate: float = 0  # bit/s of a worker's link, each way; 0: as fast as the machine is
    loss: float = 0  # share of packets lost between any two hosts, each way
    aggregators: int = 1

    @property
    def worker_link(self):
        return Link(rate=self.rate, loss=self._link_loss)

    @property
    def aggregator_link(self):
        """All aggregators' links together are as fast as all workers'."""
        return Link(rate=self.rate * self.world / self.aggregators, loss=self._link_loss)

    @property
    def _link_loss(self):
        """Two links lie between two hosts."""
        return 1 - (1 - self.loss) ** 0.5

    def text(self):
        parts = [f"{self.world} workers", f"MTU {self.mtu}"]
        parts.append(f"{rate_text(self.rate)}/s a worker" if self.rate else "links without limit")
        if self.loss:
            parts.append(f"{self.loss * 100:.4g} % loss")
        if self.aggregators != 1:
            parts.append(f"{self.aggregators} aggregators")
        return ", ".join(parts)


@dataclasses.dataclass(frozen=True)
class Point:
    network: Network
    size: int  # bytes of a tensor
    tensors: int = 1  # of an operation

    @property
    def count(self):
        return self.size // VALUE_BYTES

    @property
    def bytes(self):
        """Of an operation, at each worker."""
        return self.size * self.tensors

    def text(self):
        many = f"{self.tensors} x " if self.tensors != 1 else ""
        return f"{self.network.text()}, {many}{size_text(self.size)}"
