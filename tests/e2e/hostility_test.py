#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""Garbage as fast as a process can send it: dropped, counted by reason, and results unharmed."""

import os
import random
import signal
import socket
import struct

import harness
from harness import GRADIENTS, wait_until

PORT = 4790
HEADER = struct.Struct("!HBBIIHHIIQQHbB")  # proto/packet.hpp
MAGIC, VERSION = 0x4E41, 1
JOIN, DATA, RESULT = 3, 9, 10


def datagram(magic=MAGIC, version=VERSION, kind=DATA, job=0, epoch=1, rank=0, slot=0, sequence=0,
             element=0, length=1408, count=1408, flags=0, values=1408, byte=20):
    header = HEADER.pack(magic, version, kind, job, epoch, rank, slot, sequence, 0, element, length,
                         count, 0, flags)
    return header + bytes([byte]) * values


# Each by the counter that must show it.
HOSTILE = {
    "too_short": [b"", b"N", datagram()[:43], datagram(kind=JOIN, values=0)],
    "bad_magic": [random.Random(1).randbytes(size) for size in (44, 500, 1472)],
    "bad_version": [datagram(version=2), datagram(version=0), datagram(version=255)],
    "bad_type": [datagram(kind=0), datagram(kind=200)],
    "bad_length": [datagram(values=1407), datagram()[:700], datagram(count=100)],
    "bad_count": [datagram(count=0, values=0)],
    "bad_codec": [datagram(flags=0x10)],
    "bad_operation": [datagram(length=1407), datagram(element=1 << 63)],
    "unauthenticated": [datagram(flags=4, values=1428)],
    "unexpected_type": [datagram(kind=RESULT)],
    "unknown_session": [datagram(job=99)],
    "stale_epoch": [datagram(epoch=1), datagram(epoch=0, byte=0xFF)],
}


def send_for_ever(address):
    """In a process of its own; ends when it is killed."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams = [one for kind in HOSTILE.values() for one in kind]
    shards = [(address, PORT), (address, PORT + 1)]
    while True:
        for one in datagrams:
            for shard in shards:
                try:
                    sender.sendto(one, shard)
                except OSError:
                    pass  # a full queue


def raw_frames(source, target, target_address):
    """Ethernet frames that are no UDP datagram for the aggregator, though they claim to be."""
    ethernet = target + source
    ip = struct.Struct("!BBHHHBBH4s4s")

    def ipv4(first=0x45, length=28, fragment=0, protocol=17, checksum=None, to=target_address):
        packet = ip.pack(first, 0, length, 1, fragment, 64, protocol, 0,
                         socket.inet_aton("10.78.0.199"), socket.inet_aton(to))
        total = sum(struct.unpack("!10H", packet))
        while total > 0xFFFF:
            total = (total & 0xFFFF) + (total >> 16)
        right = ~total & 0xFFFF
        return packet[:10] + struct.pack("!H", right if checksum is None else checksum) + packet[12:]

    udp = struct.pack("!HHHH", 9, PORT, 8, 0)
    bodies = [
        b"\x08\x00", b"\x08\x00\x45", b"\x08\x00" + ipv4()[:19],
        b"\x08\x00" + ipv4(checksum=0x1234) + udp,
        b"\x08\x00" + ipv4(first=0x4F) + udp,
        b"\x08\x00" + ipv4(first=0x65) + udp,
        b"\x08\x00" + ipv4(length=1500) + udp,
        b"\x08\x00" + ipv4(length=3) + udp,
        b"\x08\x00" + ipv4(fragment=0x2000) + udp,
        b"\x08\x00" + ipv4(protocol=6) + udp,
        b"\x08\x00" + ipv4(to="10.78.0.77") + udp,
        b"\x08\x00" + ipv4() + struct.pack("!HHHH", 9, PORT, 7, 0),
        b"\x08\x00" + ipv4() + struct.pack("!HHHH", 9, PORT, 65535, 0),
        b"\x08\x00" + ipv4() + struct.pack("!HHHH", 9, PORT, 8, 0xBEEF),
        b"\x08\x00" + ipv4() + struct.pack("!HHHH", 9, 1, 8, 0),
        b"\x08\x06" + bytes(10), b"\x08\x06" + bytes([0xFF] * 28),
        b"\x81\x00\x00\x05\x81\x00", b"\x86\xdd" + bytes(40),
    ]
    return [ethernet + body for body in bodies]


class Hostility(harness.LabTest):
    workers = 5
    shards = 2

    def test_harms_no_result_and_is_counted_by_reason(self):
        attacker = self.lab.workers[4]
        address = self.lab.aggregators[0].address
        before = attacker.sent_packets()
        with attacker.namespace.entered():
            child = os.fork()
            if child == 0:
                for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                    signal.signal(number, signal.SIG_DFL)
                send_for_ever(address)
        try:
            wait_until(lambda: attacker.sent_packets() > before + 1000, 20, "the attack")
            reports = self.lab.all_reduce(4, input=lambda rank: GRADIENTS[rank], repeat=5,
                                          check_inputs=lambda rank: GRADIENTS, limit=100)
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        sent = attacker.sent_packets() - before
        self.assertEqual(len({report["checksum"] for report in reports}), 1)
        counters = self.lab.aggregators[0].stop()
        self.assertGreater(sent, 10_000)
        for reason in HOSTILE:
            with self.subTest(reason=reason):
                self.assertGreater(counters.get(reason, 0), 0)

    def test_in_raw_frames_is_counted_and_the_aggregator_goes_on(self):
        attacker = self.lab.workers[4]
        aggregator = self.lab.aggregators[0]
        status, text = attacker.run("ping", "-c", "1", "-W", "5", aggregator.address)
        self.assertEqual(status, 0, text)
        with attacker.namespace.entered():
            sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        with sender:
            sender.bind(("eth0", 0))
            source = sender.getsockname()[4]
            target = bytes.fromhex(aggregator.host.mac().replace(":", ""))
            for frame in raw_frames(source, target, aggregator.address):
                sender.send(frame)
        reports = self.lab.all_reduce(4, count=5000, check=True)
        self.assertEqual(len({report["checksum"] for report in reports}), 1)
        counters = aggregator.stop()
        # A bridge that filters drops bad IPv4 headers itself; tests/daemon has those.
        for reason in ("drop_runt", "drop_arp_malformed", "drop_ip_address", "drop_ip_protocol",
                       "drop_udp_checksum", "drop_udp_port", "drop_udp_length"):
            with self.subTest(reason=reason):
                self.assertGreater(counters.get(reason, 0), 0, counters)


if __name__ == "__main__":
    harness.main()
