# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""The libraries that are measured: how the ranks of each are started in a lab."""

import dataclasses
import json
import os
import shutil
import time

from natagg_lab import LabError, af_packet_device


_PACKET_HEADERS = 128  # more than those of IP, UDP and natagg


class RunFailed(Exception):
    """A library did not get through a point; the text says why."""


@dataclasses.dataclass
class NataggSettings:
    """What is natagg's alone; the defaults are its own."""

    driver: str = "af_packet"
    shards: int = 1
    idle: str = "polite"
    window: int = 0  # 0: the library's default
    busy_poll_us: int = 0
    io_threads: int = 1
    gso: bool = True

    def daemon_options(self):
        return {"driver": f"net_{self.driver}", "shards": self.shards, "idle": self.idle}

    def rank_arguments(self):
        arguments = ["--busy-poll", self.busy_poll_us, "--io-threads", self.io_threads]
        if self.window:
            arguments += ["--window", self.window]
        return arguments if self.gso else [*arguments, "--no-gso"]


@dataclasses.dataclass
class Settings:
    """Of one run at one point."""

    seconds: float  # to measure for
    least: int  # operations to count
    limit: float  # seconds that the run may take in all
    natagg: NataggSettings = dataclasses.field(default_factory=NataggSettings)


def _rank_arguments(point, settings, scratch, watch=()):
    arguments = ["--count", point.count, "--tensors", point.tensors, "--seconds", settings.seconds,
                 "--least", settings.least, "--directory", scratch,
                 "--limit", int(settings.limit)]
    return arguments + (["--watch", *watch] if watch else [])


def _reports(processes, world, limit, scratch):
    """What the ranks report, in their order. Ends all when one fails or takes too long."""
    deadline = time.monotonic() + limit
    try:
        while any(process.running() for process in processes):
            failed = [process for process in processes
                      if not process.running() and process.wait(1) != 0]
            if failed:
                raise RunFailed(_last_words(failed[0]))
            if time.monotonic() > deadline:
                done = len(list(scratch.glob("rank*.json")))
                raise RunFailed(f"not done after {limit:.0f} s ({done} of {world} ranks were)")
            time.sleep(0.02)
        failed = [process for process in processes if process.wait(1) != 0]
        if failed:
            raise RunFailed(_last_words(failed[0]))
        return [json.loads((scratch / f"rank{rank}.json").read_text(encoding="utf-8"))
                for rank in range(world)]
    finally:
        for process in processes:
            if process.running():
                process.kill()
                process.wait(10)


def _last_words(process):
    """What a rank said, rather than what mpirun made of it."""
    lines = process.text().strip().splitlines()
    words = [line for line in lines if "natagg-bench-rank" in line and ": " in line] or lines[-1:]
    return words[0].rpartition("/")[2] if words else f"{process.name} ended: {process.wait(1)}"


def _daemons_last_words(error):
    lines = str(error).strip().splitlines()
    reasons = [line.partition(" critical ")[2] for line in lines if " critical " in line]
    return "natagg-aggregator: " + reasons[-1] if reasons else lines[0]


class Natagg:
    name = "natagg"
    label = "natagg"
    variants = ("udp",)
    packages = ""  # option of scripts/install-packages that makes it be built

    def available(self, lab):
        return (lab.build / "tools/bench/natagg-bench-rank-natagg").exists()

    def applies(self, point):
        """Whether there is anything to measure at it."""
        del point
        return True

    def run(self, lab, point, variant, settings, scratch):
        """The ranks' reports and the aggregators' counters; raises RunFailed."""
        del variant
        before = [aggregator.host.received_packets() for aggregator in lab.aggregators]
        started = []
        try:
            for aggregator in lab.aggregators:
                started.append(aggregator.start(**settings.natagg.daemon_options(),
                                                **self._devices(lab)))
        except LabError as error:
            for aggregator in started:
                aggregator.kill()
            raise RunFailed(_daemons_last_words(error)) from None
        watch = [aggregator.process.pid for aggregator in lab.aggregators]
        pool = ",".join(aggregator.address for aggregator in lab.aggregators)
        try:
            reports = _reports([
                host.start([lab.build / "tools/bench/natagg-bench-rank-natagg",
                            "--aggregators", pool, "--rank", rank, "--world", len(lab.workers),
                            *self._transport(lab, rank), *settings.natagg.rank_arguments(),
                            *_rank_arguments(point, settings, scratch, watch)],
                           scratch / f"natagg{rank}.log")
                for rank, host in enumerate(lab.workers)], point.network.world, settings.limit,
                scratch)
        finally:
            counters = [self._stop(aggregator, packets)
                        for aggregator, packets in zip(lab.aggregators, before)]
        if len({report["after"]["checksum"] for report in reports}) != 1:
            raise RunFailed("check failed: the ranks have different results")
        return reports, counters

    def _devices(self, lab):
        """The daemon's, as Aggregator.start() takes them."""
        del lab
        return {}

    def _transport(self, lab, rank):
        """The rank's arguments."""
        del lab, rank
        return []

    @staticmethod
    def _stop(aggregator, packets_before):
        """The daemon's counters, and those of the packets at its interface that it did not get:
        not every device counts what it drops."""
        packets = aggregator.host.received_packets() - packets_before
        try:
            counters = aggregator.stop()
            return {**counters, "missed": max(packets - counters.get("rx_frames", 0), 0)}
        except LabError as error:
            raise RunFailed(_daemons_last_words(error)) from None


class NataggMemif(Natagg):
    """All ranks beside the aggregator, which they share memory with. There are no links at all."""

    name = "natagg-memif"
    label = "natagg, shared memory"
    variants = ("memif",)

    def applies(self, point):
        return point.network.worker_link.free and point.network.aggregators == 1

    def _devices(self, lab):
        return {"memifs": len(lab.workers)}

    def _transport(self, lab, rank):
        return ["--transport", f"memif:{lab.aggregators[0].memif_socket},id={rank}"]


class NataggEthdev(Natagg):
    """Workers that drive their interfaces by DPDK, as the aggregator does. Each has an address
    beside the kernel's."""

    name = "natagg-ethdev"
    label = "natagg, DPDK"
    variants = ("ethdev",)

    def _transport(self, lab, rank):
        return ["--transport", f"ethdev:{af_packet_device(lab.mtu, lab.worker_link)}",
                "--local", lab.spare_address(rank)]


class Gloo:
    name = "gloo"
    label = "Gloo"
    variants = ("ring", "ring-chunked", "halving-doubling", "bcube")
    packages = "--bench"

    def available(self, lab):
        return (lab.build / "tools/bench/natagg-bench-rank-gloo").exists()

    def applies(self, point):
        return point.network.world > 1

    def run(self, lab, point, variant, settings, scratch):
        store = scratch / "store"
        store.mkdir()
        return _reports([
            host.start([lab.build / "tools/bench/natagg-bench-rank-gloo", "--algorithm", variant,
                        "--address", host.address, "--store", store, "--rank", rank,
                        "--world", len(lab.workers), *_rank_arguments(point, settings, scratch)],
                       scratch / f"gloo{rank}.log")
            for rank, host in enumerate(lab.workers)], point.network.world, settings.limit,
            scratch), []


class Torch:
    """What torch.distributed calls for its backend "gloo"; it chooses Gloo's algorithm."""

    name = "torch"
    label = "PyTorch"
    variants = ("default",)
    packages = "--bench --torch"

    def available(self, lab):
        return (lab.build / "tools/bench/natagg-bench-rank-torch").exists()

    def applies(self, point):
        return point.network.world > 1

    def run(self, lab, point, variant, settings, scratch):
        del variant
        return _reports([
            host.start([lab.build / "tools/bench/natagg-bench-rank-torch", "--rank", rank,
                        "--store", scratch / "store", "--world", len(lab.workers),
                        *_rank_arguments(point, settings, scratch)], scratch / f"torch{rank}.log")
            for rank, host in enumerate(lab.workers)], point.network.world, settings.limit,
            scratch), []


# coll_tuned_allreduce_algorithm of Open MPI 4; "default" leaves the choice to it.
_MPI_ALGORITHMS = {"default": None, "recursive-doubling": 3, "ring": 4, "segmented-ring": 5,
                   "rabenseifner": 6}


class _Mpi:
    label = "Open MPI"
    packages = "--bench"

    def available(self, lab):
        return ((lab.build / "tools/bench/natagg-bench-rank-mpi").exists() and
                shutil.which("mpirun") is not None)

    def applies(self, point):
        return point.network.world > 1

    def run(self, lab, point, variant, settings, scratch):
        # More ranks than cores: a rank that waits lets the others run.
        arguments = ["mpirun", "--mca", "mpi_yield_when_idle", "1", "--bind-to", "none",
                     "--mca", "orte_tmpdir_base", scratch, *self.launch(lab, scratch)]
        number = _MPI_ALGORITHMS[variant]
        if number is not None:
            arguments += ["--mca", "coll_tuned_use_dynamic_rules", "1",
                          "--mca", "coll_tuned_allreduce_algorithm", number]
        arguments += [lab.build / "tools/bench/natagg-bench-rank-mpi",
                      *_rank_arguments(point, settings, scratch)]
        mpirun = lab.workers[0].start(arguments, scratch / "mpirun.log", {
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "TMPDIR": str(scratch)})
        return _reports([mpirun], point.network.world, settings.limit, scratch), []


class MpiTcp(_Mpi):
    """A host a rank. mpirun reaches the others by what it takes for a remote shell."""

    name = "mpi-tcp"
    variants = ("default", "recursive-doubling", "ring", "rabenseifner")

    def launch(self, lab, scratch):
        agent = scratch / "agent"
        cases = "\n".join(
            f"  {host.address}) fd={host.namespace.fd} ;;" for host in lab.workers)
        agent.write_text(f"""#!/bin/sh
host=$1
shift
case $host in
{cases}
esac
export TMPDIR={scratch}/$host
mkdir -p $TMPDIR
exec nsenter --net=/proc/{os.getpid()}/fd/$fd sh -c "$*"
""", encoding="ascii")
        agent.chmod(0o700)
        hosts = ",".join(f"{host.address}:1" for host in lab.workers)
        return ["-np", len(lab.workers), "--host", hosts, "--mca", "plm_rsh_agent", agent,
                "--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "oob_tcp_if_include", "eth0",
                "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "eth0",
                "--mca", "pml", "ob1", "--map-by", "node"]


class MpiShm(_Mpi):
    """All ranks on one host, which have no links at all."""

    name = "mpi-shm"
    variants = ("default",)

    def applies(self, point):
        return super().applies(point) and point.network.worker_link.free

    def launch(self, lab, scratch):
        del scratch
        return ["-np", len(lab.workers), "--oversubscribe", "--mca", "btl", "vader,self",
                "--mca", "pml", "ob1"]


class Udp:
    """Not an all-reduce: a round trip between two workers of a packet as long as natagg's."""

    name = "udp"
    label = "UDP"
    packages = ""
    variants = ("round trip",)

    def available(self, lab):
        return (lab.build / "tools/bench/natagg-bench-rank-udp").exists()

    def applies(self, point):
        return (point.network.world == 2 and point.network.loss == 0 and point.tensors == 1 and
                point.count + _PACKET_HEADERS <= point.network.mtu)

    def run(self, lab, point, variant, settings, scratch):
        del variant
        return _reports([
            host.start([lab.build / "tools/bench/natagg-bench-rank-udp", "--rank", rank,
                        "--address", host.address, "--peer", lab.workers[1 - rank].address,
                        *_rank_arguments(point, settings, scratch)], scratch / f"udp{rank}.log")
            for rank, host in enumerate(lab.workers)], 2, settings.limit, scratch), []


BACKENDS = {backend.name: backend for backend in
            (Natagg(), NataggMemif(), NataggEthdev(), Gloo(), Torch(), MpiTcp(), MpiShm(), Udp())}


