#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""One daemon under mixed jobs, faults and joins keeps nothing of them: memory, file descriptors,
jobs, slots and buffers are the same before and after.

scripts/soak runs it for hours; NATAGG_SOAK_SECONDS (0: two rounds) and NATAGG_SOAK_SEED say how
long and in which order."""

import os
import random
import re
import signal
import socket
import time
from pathlib import Path

import harness
from harness import MISMATCH, RANK_LOST, REDUCED, TIMED_OUT, wait_until

SECONDS = float(os.environ.get("NATAGG_SOAK_SECONDS", "0"))
SEED = int(os.environ.get("NATAGG_SOAK_SEED", "1"))

# Of the C library's heap, which grows and shrinks by whole pages and arenas.
SLACK_KIB = 1024

STORY_LIMIT = 60  # seconds
PORT = 4790


class Soak(harness.LabTest):
    workers = 6
    shards = 2
    options = {"forming_timeout_ms": 300}

    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        self.next_job = 0
        self.daemon = self.lab.aggregators[0].process

    def job(self):
        self.next_job += 1
        return self.next_job

    def start(self, world, first=0, **options):
        job = self.job()
        return [self.lab.start_rank(rank, world, self.lab.workers[first + rank], job=job,
                                    seed=job, **{name: value(rank) if callable(value) else value
                                                 for name, value in options.items()})
                for rank in range(world)]

    def finish(self, ranks):
        reports = [rank.done(STORY_LIMIT) for rank in ranks]
        self.assertEqual(len({report["checksum"] for report in reports}), 1, reports)

    def fail_with(self, ranks, *statuses):
        for rank in ranks:
            code, report = rank.ended(STORY_LIMIT)
            self.assertEqual(code, 1, report)
            self.assertIn(report["status"], statuses, report)

    def at_work(self, ranks, packets=200):
        hosts = self.lab.workers[:len(ranks)]
        before = [host.sent_packets() for host in hosts]
        wait_until(lambda: all(host.sent_packets() > before[i] + packets
                               for i, host in enumerate(hosts)),
                   STORY_LIMIT, "ranks to be at work", *(rank.process for rank in ranks))

    # --- Stories, each with workers 0 to 3, while workers 4 and 5 have a job of their own ---

    def all_goes_well(self):
        self.finish(self.start(
            self.random.randint(1, 4), count=self.random.choice([0, 1, 129, 5000, 40_000]),
            type=self.random.choice(["float32", "float64", "float16", "bfloat16"]), check=True,
            repeat=self.random.randint(1, 4)))

    def packets_are_lost(self):
        self.finish(self.start(3, count=20_000, check=True, transmit_loss=0.05, receive_loss=0.05,
                               loss_seed=lambda rank: rank + self.next_job))

    def a_rank_is_killed(self):
        ranks = self.start(4, count=50_000, repeat=1_000_000)
        self.at_work(ranks)
        ranks.pop(self.random.randrange(4)).die()
        self.fail_with(ranks, RANK_LOST)

    def all_ranks_are_killed(self):
        ranks = self.start(3, count=50_000, repeat=1_000_000)
        self.at_work(ranks)
        for rank in ranks:
            rank.die()

    def a_rank_is_stopped_for_a_moment(self):
        ranks = self.start(3, count=50_000, repeat=40)
        self.at_work(ranks)
        ranks[0].process.kill(signal.SIGSTOP)
        time.sleep(0.2)  # less than the member time-out: what is tested, not a wait for something
        ranks[0].process.kill(signal.SIGCONT)
        self.finish(ranks)

    def a_cable_is_pulled_for_a_moment(self):
        ranks = self.start(3, count=50_000, repeat=40)
        self.at_work(ranks)
        port = self.lab.workers[1].port
        self.lab.run_in_switch("ip", "link", "set", port, "down")
        time.sleep(0.1)  # likewise
        self.lab.run_in_switch("ip", "link", "set", port, "up")
        self.finish(ranks)

    def ranks_disagree(self):
        self.fail_with(self.start(3, count=lambda rank: 4000 + rank % 2), MISMATCH, RANK_LOST)

    def a_rank_never_comes(self):
        ranks = self.start(4, count=1000, connect_timeout=300)
        ranks.pop().die()
        self.fail_with(ranks, TIMED_OUT, RANK_LOST)

    def strangers_send_garbage(self):
        with self.lab.workers[0].namespace.entered():
            sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        address = self.lab.aggregators[0].address
        with sender:
            for _ in range(2000):
                kind = self.random.randint(1, 12)
                header = b"NA\x01" + bytes([kind]) + self.random.randbytes(37)
                body = self.random.randbytes(self.random.randint(0, 400))
                control = b"" if kind in (9, 10) else b"\0\0\0\0"
                datagram = (header[:40] + control + body) if control else header + body
                sender.sendto(datagram, (address, PORT + self.random.randint(0, 1)))

    STORIES = [all_goes_well, packets_are_lost, a_rank_is_killed, all_ranks_are_killed,
               a_rank_is_stopped_for_a_moment, a_cable_is_pulled_for_a_moment, ranks_disagree,
               a_rank_never_comes, strangers_send_garbage]

    def round(self):
        stories = list(self.STORIES)
        self.random.shuffle(stories)
        for story in stories:
            other = self.start(2, first=4, count=10_000, repeat=3, check=True)
            with self.subTest(story=story.__name__):
                story(self)
            self.finish(other)

    # --- What the daemon holds ---

    def gauges(self):
        """Its counters, as it prints them when asked."""
        reports = self.daemon.text().count("counters:")
        self.daemon.kill(signal.SIGUSR1)
        wait_until(lambda: self.daemon.text().count("counters:") > reports, STORY_LIMIT, "counters")
        wait_until(lambda: "accepted" in self.daemon.text().rpartition("counters:")[2],
                   STORY_LIMIT, "the end of the counters")
        return self.lab.aggregators[0].counters()

    def held(self):
        """Once it has forgotten all jobs: resident KiB and open file descriptors."""
        wait_until(lambda: not self.gauges().get("jobs_now"), STORY_LIMIT, "all jobs to be gone",
                   self.daemon)
        proc = Path(f"/proc/{self.daemon.pid}")
        resident = int(re.search(r"VmRSS:\s+(\d+)", (proc / "status").read_text())[1])
        return resident, len(list((proc / "fd").iterdir()))

    def test_holds_no_more_after_jobs_and_faults_than_before(self):
        start = time.monotonic()
        if REDUCED:
            self.finish(self.start(2, count=10_000))  # before it the counters are all 0: no rows
        else:
            self.round()  # what is allocated once and kept
        resident, descriptors = self.held()
        rounds = 0
        while rounds < 1 or time.monotonic() - start < SECONDS:
            self.round()
            rounds += 1
        after, descriptors_after = self.held()
        counters = self.lab.aggregators[0].stop()
        print(f"{rounds} counted rounds of {len(self.STORIES)} stories in {time.monotonic() - start:.0f} s, "
              f"seed {SEED}: {resident} KiB before, {after} KiB after; {descriptors} descriptors "
              f"before, {descriptors_after} after; {counters['sessions']} sessions", flush=True)
        self.assertEqual(descriptors_after, descriptors)
        if not REDUCED:  # a sanitizer keeps what is freed
            self.assertLessEqual(after, resident + SLACK_KIB)
        self.assertEqual(counters.get("open_slots_now", 0), 0)
        self.assertNotIn("not given back", self.daemon.text())


if __name__ == "__main__":
    harness.main()
