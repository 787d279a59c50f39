# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""What a cable of the lab does to packets: how fast it is, and what it loses."""

import dataclasses

# Of a queue in front of a link: as much as the link carries meanwhile, and room for a few packets.
QUEUE_SECONDS = 0.025
LEAST_QUEUE = 128 * 1024  # bytes
# A bucket of tokens lasts while the kernel is late to look.
BURST_SECONDS = 0.001


@dataclasses.dataclass(frozen=True)
class Link:
    """Both directions are alike."""

    rate: float = 0  # bit/s, counted with Ethernet headers; 0: as fast as the machine is
    loss: float = 0  # share of packets that are lost in each direction

    @property
    def free(self):
        return not self.rate and not self.loss

    def host_commands(self):
        """For tc, in the host: what it sends."""
        return [self._limit("eth0")] if self.rate else []

    def switch_commands(self, port):
        """For tc, in the switch: what goes to the host, and losses of both directions."""
        commands = [self._limit(port)] if self.rate else []
        if self.loss:
            commands.append(f"qdisc add dev {port} clsact")
            for direction in ("ingress", "egress"):
                commands.append(f"filter add dev {port} {direction} protocol all bpf "
                                f"direct-action bytecode '{self._loss_program()}'")
        return commands

    def _limit(self, device):
        burst = max(int(self.rate / 8 * BURST_SECONDS), 20_000)
        queue = max(int(self.rate / 8 * QUEUE_SECONDS), LEAST_QUEUE)
        return f"qdisc add dev {device} root tbf rate {int(self.rate)}bit burst {burst} limit {queue}"

    def _loss_program(self):
        """Classic BPF: draws 32 random bits and returns TC_ACT_SHOT or TC_ACT_OK. It needs no
        kernel option that netem would need."""
        load_random = "32 0 0 4294963256"  # SKF_AD_OFF + SKF_AD_RANDOM
        threshold = min(int(self.loss * 2**32), 2**32 - 1)
        return f"4,{load_random},53 0 1 {threshold},6 0 0 0,6 0 0 2"
