#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""natagg as `meson install` leaves it: users find headers, library and configuration."""

import configparser
import json
import os
import shlex
import subprocess
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = os.environ["NATAGG_BUILD"]
VERSION = os.environ["NATAGG_VERSION"]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
C = [*shlex.split(os.environ["NATAGG_CC"]), "-std=c99", *WARNINGS]
CXX = [*shlex.split(os.environ["NATAGG_CXX"]), "-std=c++20", *WARNINGS]


def run(command, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{shlex.join(map(str, command))}: {done.returncode}\n{done.stdout}")
    return done.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.root = Path(cls.scratch.name) / "root"
        run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", cls.root])
        options = json.loads(run(["meson", "introspect", "--buildoptions", BUILD]))
        cls.options = {option["name"]: option["value"] for option in options}
        cls.prefix = Path(cls.options["prefix"])
        pkgconfig = cls.inside(cls.prefix / cls.options["libdir"] / "pkgconfig")
        cls.environment = {**os.environ, "PKG_CONFIG_SYSROOT_DIR": str(cls.root),
                           "PKG_CONFIG_LIBDIR": str(pkgconfig)}

    @classmethod
    def inside(cls, path):
        """Where `path` of the installation is for now."""
        return cls.root / path.relative_to("/")

    def pkg_config(self, *arguments):
        return shlex.split(run(["pkg-config", *arguments, "natagg"], env=self.environment))

    def build(self, compiler, source, *options):
        program = Path(self.scratch.name) / source.stem
        run([*compiler, *options, *shlex.split(os.environ["NATAGG_SANITIZE"]), source,
             *self.pkg_config("--cflags", "--libs"), "-o", program])
        return program

    def start(self, program, *arguments):
        libraries = self.inside(self.prefix / self.options["libdir"])
        return run([program, *arguments], env={**os.environ, "LD_LIBRARY_PATH": str(libraries)})

    def test_has_a_pkg_config_file_of_its_version(self):
        self.assertEqual(self.pkg_config("--modversion"), [VERSION])

    def test_runs_a_program_in_cxx20(self):
        version, reason = self.start(self.build(CXX, HERE / "program.cpp"),
                                     "127.0.0.1:1").splitlines()
        self.assertEqual(version, VERSION)
        self.assertTrue(reason.startswith("timed out: "), reason)
        self.assertIn("127.0.0.1:1", reason)

    def test_runs_a_program_in_c99(self):
        source = HERE.parent / "worker_api" / "c99_link_test.c"
        program = self.build(C, source, f'-DEXPECTED_VERSION="{VERSION}"')
        self.assertEqual(self.start(program), "")

    def test_has_headers_that_need_no_other_before_them(self):
        folder = self.inside(self.prefix / self.options["includedir"]) / "natagg"
        headers = sorted(path.name for path in folder.iterdir())
        self.assertEqual(headers, ["natagg.h", "status.h", "types.hpp", "worker.hpp"])
        for header in headers:
            for compiler, language in ((C, "c"), (CXX, "c++")):
                if language == "c" and header.endswith(".hpp"):
                    continue
                with self.subTest(header=header, language=language):
                    source = Path(self.scratch.name) / "alone"
                    source.write_text(f"#include <natagg/{header}>\n", encoding="utf-8")
                    run([*compiler, "-fsyntax-only", *self.pkg_config("--cflags"), "-x", language,
                         source])

    def test_has_a_unit_whose_paths_exist(self):
        unit = configparser.ConfigParser(interpolation=None)
        unit.optionxform = str
        unit.read(self.inside(self.prefix / "lib/systemd/system/natagg-aggregator.service"))
        program, option, configuration = unit["Service"]["ExecStart"].split()
        self.assertEqual(program, str(self.prefix / self.options["bindir"] / "natagg-aggregator"))
        self.assertTrue(os.access(self.inside(Path(program)), os.X_OK))
        self.assertEqual(option, "--config")
        self.assertTrue(self.inside(Path(configuration)).is_file(), configuration)
        self.assertTrue(self.inside(Path(unit["Unit"]["Documentation"].removeprefix("file:")))
                        .is_file())
        self.assertNotIn("@", "".join(map(str, unit["Service"].values())))

    def test_has_a_daemon_that_takes_the_installed_configuration_and_an_address(self):
        program = self.inside(self.prefix / self.options["bindir"]) / "natagg-aggregator"
        configuration = self.inside(self.prefix / self.options["sysconfdir"])
        run([program, "--config", configuration / "natagg" / "natagg-aggregator.ini",
             "--check-config"], env={**os.environ, "NATAGG_ADDRESS": "10.0.0.1"})


if __name__ == "__main__":
    unittest.main()
