#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""Rules that hold for every file of the repository."""

import os
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MAX_LINES = 600
CODE = {".c", ".cpp", ".h", ".hpp", ".p4", ".py", ".sh"}
HEADERS_WITH_SYSTEM_CALLS = {"chrono", "filesystem", "fstream", "future", "iostream", "mutex",
                             "condition_variable", "random", "semaphore", "thread"}

# Each sans-I/O part, and the folders that it may include from.
CORES = {
    "proto": ["proto"],
    "aggregator/core": ["aggregator/core", "proto"],
    "worker_lib/core": ["worker_lib/core", "proto", "natagg/status.h"],
}


def files():
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if not re.match(r"build|\.git$|\.cache$|__py", name)]
        yield from (Path(folder) / name for name in names)


def is_script(path):
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def is_source(path):
    return path.suffix in CODE or path.name == "meson.build" or is_script(path)


def source_lines():
    """(path from the root, its lines) of each source file."""
    for path in files():
        if is_source(path):
            yield path.relative_to(ROOT), path.read_text(encoding="utf-8").splitlines()


class Sources(unittest.TestCase):
    def test_begin_with_the_licence(self):
        for path, lines in source_lines():
            head = lines[1:] if lines and lines[0].startswith("#!") else lines
            with self.subTest(path=str(path)):
                self.assertIn("SPDX-License-Identifier: BSD-3-Clause", head[0] if head else "")

    def test_are_not_longer_than_can_be_read(self):
        for path, lines in source_lines():
            with self.subTest(path=str(path)):
                self.assertLessEqual(len(lines), MAX_LINES)

    def test_leave_nothing_for_later(self):
        later = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
        for path, lines in source_lines():
            for number, line in enumerate(lines, 1):
                with self.subTest(path=str(path), line=number):
                    self.assertNotRegex(line, later)

    def test_that_are_scripts_can_be_executed(self):
        for path in files():
            if is_script(path):
                with self.subTest(path=str(path)):
                    self.assertTrue(os.access(path, os.X_OK))


class Cores(unittest.TestCase):
    def test_include_nothing_that_does_input_or_output(self):
        for core, allowed in CORES.items():
            sources = [path for path in (ROOT / core).rglob("*") if path.suffix in (".cpp", ".hpp")]
            self.assertGreater(len(sources), 3, core)
            for path in sources:
                for header in re.findall(r"^\s*#\s*include\s+(\S+)", path.read_text(), re.MULTILINE):
                    name = str(path.relative_to(ROOT))
                    with self.subTest(path=name, header=header):
                        self.assertTrue(self.may_include(header, allowed) or
                                        name == "proto/authentication.cpp" and
                                        header.startswith("<openssl/"))

    @staticmethod
    def may_include(header, allowed):
        name = header[1:-1]
        if header.startswith('"'):
            return any(name == place or name.startswith(place + "/") for place in allowed)
        # The standard library's headers have no suffix; the intrinsics are no input or output.
        standard = "." not in name and "/" not in name and name not in HEADERS_WITH_SYSTEM_CALLS
        return standard or name == "immintrin.h"


class Readme(unittest.TestCase):
    def setUp(self):
        self.text = (ROOT / "README.md").read_text(encoding="utf-8")

    def test_shows_the_two_commands(self):
        for command in ("./quickstart", "./test"):
            self.assertIn(command, self.text)

    def test_commands_exist_and_can_be_executed(self):
        for command in set(re.findall(r"(?:^|[\s`])\./([\w./-]+)", self.text)):
            with self.subTest(command=command):
                self.assertTrue(command.startswith("build") or os.access(ROOT / command, os.X_OK))

    def test_links_lead_somewhere(self):
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", self.text):
            with self.subTest(target=target):
                self.assertTrue((ROOT / target).exists())


class Reliability(unittest.TestCase):
    def test_every_test_it_names_exists(self):
        known = set()
        for path, lines in source_lines():
            text = "\n".join(lines)
            if path.parts[0] == "tests" and path.suffix == ".py":
                known |= {f"{path.stem}.{name}" for name in re.findall(r"def (test_\w+)", text)}
            elif path.parts[0] == "tests":
                known |= {f"{suite}.{name}" for suite, name in
                          re.findall(r"^(?:TYPED_)?TEST(?:_[FP])?\((\w+),\s+(\w+)\)", text, re.M)}
        text = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")
        named = set(re.findall(r"`(\w+\.\w+)`", text))
        self.assertGreater(len(named), 50)
        self.assertEqual(named - known, set())


if __name__ == "__main__":
    unittest.main()
