# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""What the end-to-end tests share."""

import os
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

# pylint: disable=wrong-import-position
import isolation  # noqa: E402
import natagg_lab  # noqa: E402
from natagg_lab import LabError, Process, wait_until  # noqa: E402,F401

BUILD = Path(os.environ.get("NATAGG_BUILD", ROOT / "build")).resolve()
SCRATCH = BUILD / "lab"

# Sanitized programs take several times as long; "reduced" has them do less.
REDUCED = os.environ.get("NATAGG_E2E") == "reduced"

GRADIENTS = [str(ROOT / "tests" / "data" / f"step400.rank{rank}.f32") for rank in range(4)]
GRADIENT_LENGTH = 215370

# natagg/status.h
TIMED_OUT = -2
REFUSED = -3
RANK_LOST = -4
MISMATCH = -5
AGGREGATOR_LOST = -6


def write_key(path, mode=0o600):
    """A new key, which only its owner may read unless `mode` says otherwise."""
    path.write_bytes(os.urandom(32))
    path.chmod(mode)
    return path


def make_key_directory(lab, *jobs):
    """As the aggregator's option takes it, and {job: its key's file}."""
    directory = lab.scratch / "keys"
    directory.mkdir(mode=0o700)
    return directory, {job: write_key(directory / f"{job}.key") for job in jobs}


class LabTest(unittest.TestCase):
    """A test case with one lab for all of its tests. Its aggregators are running before each."""

    aggregators = 1
    workers = 4
    mtu = 1500
    shards = 1
    options = {}  # the daemons' own

    @classmethod
    def setUpClass(cls):
        cls.lab = cls.enterClassContext(natagg_lab.Lab(
            BUILD, SCRATCH, aggregators=cls.aggregators, workers=cls.workers, mtu=cls.mtu))

    def setUp(self):
        for aggregator in self.lab.aggregators:
            if not (aggregator.process and aggregator.process.running()):
                aggregator.start(self.shards, **self.options)

    def run(self, result=None):
        before = len(result.failures) + len(result.errors)
        super().run(result)
        if len(result.failures) + len(result.errors) > before:
            self.lab.print_logs()

    @classmethod
    def tearDownClass(cls):
        """Every daemon that is still there ends in order."""
        for aggregator in cls.lab.aggregators:
            if aggregator.process and aggregator.process.running():
                aggregator.stop()


def main():
    isolation.isolate(str(SCRATCH))
    unittest.main(verbosity=2)
