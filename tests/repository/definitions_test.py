#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""The packet is defined in proto/packet.hpp: specification and P4 program say the same."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BITS = {"Be16": 16, "Be32": 32, "Be64": 64, "std::uint8_t": 8, "std::int8_t": 8, "Type": 8,
        "SessionState": 8, "RefuseReason": 8, "LeaveReason": 8, "AbortReason": 8}


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def cpp_struct(name):
    """[(field, bits)] of a struct in packet.hpp."""
    body = re.search(rf"struct {name} \{{\n(.*?)\n\}};", read("proto/packet.hpp"), re.S).group(1)
    fields = re.findall(r"^  ([\w:]+) (\w+)(?:\[(\d+)\])?;", body, re.M)
    return [(field, BITS[kind] * int(n or 1)) for kind, field, n in fields]


def cpp_enum(name):
    """{constant: number} of an enum in packet.hpp."""
    body = re.search(rf"enum class {name} .*?\{{\n(.*?)\n\}};", read("proto/packet.hpp"), re.S).group(1)
    return {key: int(value) for key, value in re.findall(r"k(\w+) = (\d+)", body)}


class Definitions(unittest.TestCase):
    def test_specification_lists_every_header_field_at_its_offset(self):
        table = read("proto/specification.md").split("## 2. Packets")[1].split("## 3.")[0]
        rows = re.findall(r"^\| (\d+) \| (\d+) \| (\w+) \|", table, re.M)
        offset = 0
        expected = []
        for field, bits in cpp_struct("Header"):
            expected.append((str(offset), str(bits // 8), field))
            offset += bits // 8
        self.assertEqual(rows, expected)

    def test_specification_lists_every_type_and_body(self):
        table = read("proto/specification.md").split("## 3. Types")[1].split("## 4.")[0]
        rows = re.findall(r"^\| (\d+) \| ([A-Z]+) \| \w+ \| ?(.*?) ?\|$", table, re.M)
        types = cpp_enum("Type")
        self.assertEqual({name: int(number) for number, name, _ in rows},
                         {name.upper(): number for name, number in types.items()})
        for _, name, body in rows:
            if name in ("HEARTBEAT", "PROBE", "DATA", "RESULT", "PARTIAL"):
                continue
            with self.subTest(type=name):
                fields = ", ".join(f"{field} {bits}" for field, bits in
                                   cpp_struct(name.capitalize() + "Body"))
                self.assertEqual(body, fields)

    def test_specification_lists_every_reason(self):
        text = re.sub(r"\s+", " ", read("proto/specification.md"))
        for enum, marker in (("RefuseReason", "Reasons:"), ("LeaveReason", "LEAVE reasons:"),
                             ("AbortReason", "ABORT reasons:")):
            listed = re.search(marker + r" (.*?)\. ", text + " ").group(1)
            numbers = [int(n) for n in re.findall(r"(?:^|, )(\d+) ", listed)]
            self.assertEqual(numbers, sorted(cpp_enum(enum).values()))

    def test_p4_header_has_the_same_fields(self):
        p4 = read("p4/headers.p4")
        body = re.search(r"header natagg_t \{(.*?)\}", p4, re.S).group(1)
        body = body.replace("natagg_type_t ", "bit<8> ")
        fields = [(name, int(bits)) for bits, name in re.findall(r"(?:bit|int)<(\d+)> (\w+);", body)]
        self.assertEqual(fields, cpp_struct("Header"))

    def test_p4_constants_and_types_are_the_same(self):
        p4, cpp = read("p4/headers.p4"), read("proto/packet.hpp")
        for p4_name, cpp_name in (("MAGIC", "kMagic"), ("VERSION", "kVersion"),
                                  ("PORT", "kDefaultPort")):
            ours = re.search(rf"NATAGG_{p4_name} = (\w+);", p4).group(1)
            theirs = re.search(rf"{cpp_name} = (\w+);", cpp).group(1)
            self.assertEqual(int(ours, 0), int(theirs, 0), p4_name)
        body = re.search(r"enum bit<8> natagg_type_t \{(.*?)\}", p4, re.S).group(1)
        self.assertEqual({name: int(n) for name, n in re.findall(r"(\w+) = (\d+)", body)},
                         {name.upper(): number for name, number in cpp_enum("Type").items()})


if __name__ == "__main__":
    unittest.main()
