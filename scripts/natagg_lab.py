# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""A small data centre on one machine: aggregators and workers in network namespaces of their own,
on a bridge in another one that plays the top-of-rack switch. Use it after isolation.isolate().
"""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import isolation
from links import Link

# Debian keeps ip and its kind out of users' paths.
_ENVIRONMENT = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}

COMMAND_LIMIT = 20  # seconds for what takes milliseconds


class LabError(Exception):
    """Something did not go as it must; the text holds the logs that tell why."""


class Process:
    """A program running in a host. Its output goes to a file."""

    def __init__(self, arguments, log, environment=None):
        """`log` is in the process's working directory."""
        self.name = log.stem
        self.log = log
        with open(log, "ab") as file:
            self._process = subprocess.Popen(
                [str(argument) for argument in arguments], stdin=subprocess.DEVNULL, stdout=file,
                stderr=subprocess.STDOUT, cwd=log.parent, env={**_ENVIRONMENT, **(environment or {})})

    @property
    def pid(self):
        return self._process.pid

    def text(self):
        return self.log.read_text(errors="replace")

    def running(self):
        return self._process.poll() is None

    def kill(self, number=signal.SIGKILL):
        self._process.send_signal(number)

    def wait(self, limit):
        """The exit status."""
        try:
            return self._process.wait(limit)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()
            raise LabError(f"{self.name} has not ended after {limit} s:\n{self.text()}") from None


class Host:
    """A machine with one interface, eth0, whose other end, `port`, is plugged into the switch."""

    def __init__(self, name, number, address):
        self.name = name
        self.port = f"port{number}"
        self.address = address
        self.namespace = isolation.NetworkNamespace()

    def start(self, arguments, log, environment=None):
        with self.namespace.entered():
            return Process(arguments, log, environment)

    def run(self, *arguments, limit=COMMAND_LIMIT):
        """A short command's exit status and output."""
        with self.namespace.entered():
            done = subprocess.run([str(argument) for argument in arguments], env=_ENVIRONMENT,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=limit, check=False)
        return done.returncode, done.stdout

    def mac(self):
        with self.namespace.entered():
            interfaces = subprocess.run(["ip", "-json", "link", "show", "eth0"], env=_ENVIRONMENT,
                                        stdout=subprocess.PIPE, timeout=COMMAND_LIMIT, check=True)
        return json.loads(interfaces.stdout)[0]["address"]

    def sent_packets(self):
        return self._interface_numbers()[9]

    def received_packets(self):
        return self._interface_numbers()[1]

    def _interface_numbers(self):
        """Bytes, packets and six more received, then bytes, packets ... sent."""
        with self.namespace.entered():
            lines = Path("/proc/thread-self/net/dev").read_text().splitlines()
        return next([int(number) for number in line.split(":")[1].split()]
                    for line in lines if "eth0:" in line)


def af_packet_device(mtu, link, queues=1):
    """EAL's words for a host's eth0, at its end of `link`."""
    # A ring's frames hold the MTU and what the kernel puts before it; blocks are whole pages and
    # whole frames. The kernel locks the rings, one to receive and one to send for each queue.
    frame, block = (2048, 4096) if mtu <= 1500 else (9216, 36864)
    frames = 1024
    while 2 * queues * frames * frame > isolation.lockable_bytes() and frames > 32:
        frames //= 2
    # Without the bypass, what is sent goes through the queue that limits the link.
    return (f"net_af_packet0,iface=eth0,qpairs={queues},framesz={frame},blocksz={block},"
            f"framecnt={frames},qdisc_bypass={0 if link.rate else 1}")


class Aggregator:
    """A host and the daemon that it is for."""

    READY_LIMIT = 20  # seconds; a loaded machine takes one or two

    def __init__(self, lab, host):
        self._lab = lab
        self.host = host
        self.address = host.address
        self.process = None
        self.memif_socket = None
        self.name = None  # of the daemon, also for DPDK
        self.runtime = None
        self._starts = 0

    def start(self, shards=1, memifs=0, driver="net_af_packet", hugepages=False, **options):
        """`options` are the daemon's own. With `memifs`, it serves so many workers beside it through
        memory alone, by devices of those numbers from 0 on `memif_socket`. `driver` is what takes
        the host's interface; net_tap makes one of its own, which is bridged to it. With `hugepages`,
        DPDK's tools can attach, in the directory `runtime`."""
        self._starts += 1
        name = self.name = f"{self.host.name}.{self._starts}"
        self.memif_socket = self._lab.scratch / f"{name}.memif"
        ready = self._lab.scratch / f"{name}.ready"
        options = {"address": self.address, "idle": "polite", "ready_file": ready,
                   **options}
        # Relative to the working directory: DPDK makes sockets there, whose paths must be short.
        self.runtime = f"{name}.run"
        (self._lab.scratch / self.runtime).mkdir()
        self.process = self.host.start(
            [self._lab.daemon, *self._eal_arguments(shards, name, hugepages),
             *(self._memif_arguments(memifs) if memifs else self._kernel_arguments(driver, shards)),
             "--",
             *(f"--{key}={value}" for key, value in options.items())],
            self._lab.scratch / f"{name}.log", {"RUNTIME_DIRECTORY": self.runtime})
        wait_until(lambda: ready.exists() or not self.process.running(), self.READY_LIMIT,
                   f"{name} to be ready", self.process)
        if not self.process.running():
            raise LabError(f"{name} has ended at start:\n{self.process.text()}")
        if driver == "net_tap":
            self._lab.bridge_tap(self.host)
        return self

    @staticmethod
    def _eal_arguments(shards, name, hugepages):
        cpus = ",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0)))
        lcores = ",".join(f"{shard}@({cpus})" for shard in range(shards))
        memory = [] if hugepages else ["--no-huge", "--no-shconf"]
        return [*memory, "-m", "256", "--no-pci", "--file-prefix", name, "--lcores", lcores]

    def _memif_arguments(self, memifs):
        arguments = []
        for number in range(memifs):
            arguments += ["--vdev", f"net_memif{number},id={number},role=server,socket-abstract=no,"
                                    f"socket={self.memif_socket}"]
        return arguments

    def _kernel_arguments(self, driver, shards):
        if driver == "net_af_xdp":
            return ["--vdev", "net_af_xdp0,iface=eth0"]
        if driver == "net_tap":
            return ["--vdev", "net_tap0,iface=tap0"]
        return ["--vdev", af_packet_device(self._lab.mtu, self._lab.aggregator_link, shards)]

    def kill(self):
        """As a machine dies."""
        self.process.kill()
        self.process.wait(COMMAND_LIMIT)

    def stop(self):
        """In order; returns the counters that the daemon prints at its end."""
        self.process.kill(signal.SIGTERM)
        status = self.process.wait(COMMAND_LIMIT)
        if status != 0:
            raise LabError(f"{self.process.name} ended with {status}:\n{self.process.text()}")
        return self.counters()

    def counters(self):
        """{name: total} as last printed. What is zero is not printed."""
        last = self.process.text().rpartition("counters:")[2]
        return {name: int(total) for name, total in
                re.findall(r" ([a-z_]+) +(\d+)(?:  \(.*\))?$", last, re.MULTILINE)}


class Lab:
    """Hosts on a switch. Use it in a with statement."""

    def __init__(self, build, scratch, aggregators=1, workers=1, mtu=1500, worker_link=Link(),
                 aggregator_link=Link()):
        self.mtu = mtu
        self.worker_link = worker_link
        self.aggregator_link = aggregator_link
        self.build = Path(build).resolve()
        self.daemon = self.build / "aggregator" / "natagg-aggregator"
        self.allreduce = self.build / "tools" / "natagg-allreduce"
        self.scratch = Path(scratch).resolve() / f"lab{time.monotonic_ns()}"
        self.scratch.mkdir()
        self.switch = isolation.NetworkNamespace()
        self.aggregators = [
            Aggregator(self, Host(f"aggregator{i}", i, f"10.78.0.{i + 1}"))
            for i in range(aggregators)]
        self.workers = [Host(f"worker{i}", 100 + i, f"10.78.0.{i + 101}") for i in range(workers)]
        self._processes = 0
        self._wire()

    def __enter__(self):
        return self

    @staticmethod
    def spare_address(worker):
        """Of that worker's host, for what does without the kernel's."""
        return f"10.78.0.{worker + 201}"

    def __exit__(self, kind, error, trace):
        for aggregator in self.aggregators:
            if aggregator.process and aggregator.process.running():
                aggregator.kill()
        if error is not None:
            self.print_logs()
        for host in self._hosts():
            host.namespace.close()
        self.switch.close()

    def print_logs(self):
        for log in sorted(self.scratch.glob("*.log")):
            print(f"--- {log.name}\n{log.read_text(errors='replace')}", flush=True)

    def _hosts(self):
        return [aggregator.host for aggregator in self.aggregators] + self.workers

    def _wire(self):
        # Nobody here speaks IPv6, whose announcements would only add noise.
        quiet = f"mtu {self.mtu} addrgenmode none"
        commands = ["link add switch type bridge stp_state 0 forward_delay 0",
                    f"link set switch {quiet} up"]
        for host in self._hosts():
            commands += [f"link add {host.port} type veth peer name eth0 netns "
                         f"/proc/self/fd/{host.namespace.fd}",
                         f"link set {host.port} {quiet} master switch up"]
        self._ip(self.switch, commands)
        for host in self._hosts():
            self._ip(host.namespace, ["link set lo up", f"link set eth0 {quiet} up"])
        for host in self.workers:
            self._ip(host.namespace, [f"address add {host.address}/24 dev eth0"])
            self._plug(host, self.worker_link)
        for aggregator in self.aggregators:
            self._plug(aggregator.host, self.aggregator_link)

    def cut_up(self, aggregator, done=True):
        """As a NIC would: what goes to the aggregator is then no longer than its MTU, also where
        workers hand several packets to their kernel as one."""
        self._ip(self.switch, [f"link set {aggregator.host.port} gso_max_segs "
                               f"{1 if done else 65535}"])

    def bridge_tap(self, host):
        """Joins tap0 to the host's cable. The bridge outlives the tap's daemon."""
        quiet = f"mtu {self.mtu} addrgenmode none"
        if host.run("ip", "link", "show", "tap-bridge")[0] != 0:
            self._ip(host.namespace, ["link add tap-bridge type bridge stp_state 0 forward_delay 0",
                                      f"link set tap-bridge {quiet} up",
                                      "link set eth0 master tap-bridge"])
        # DPDK's end has the address that the kernel's end comes with.
        self._ip(host.namespace, ["link set tap0 address 02:00:00:00:00:01",
                                  f"link set tap0 {quiet} master tap-bridge up"])

    def _plug(self, host, link):
        if link.free:
            return
        # Such a link carries packets no longer than its MTU, and loses them one by one.
        self._ip(host.namespace, ["link set eth0 gso_max_segs 1"])
        self._ip(self.switch, [f"link set {host.port} gso_max_segs 1"])
        self._batch("tc", host.namespace, link.host_commands())
        self._batch("tc", self.switch, link.switch_commands(host.port))

    def _ip(self, namespace, commands):
        self._batch("ip", namespace, commands)

    def _batch(self, program, namespace, commands):
        if not commands:
            return
        with namespace.entered():
            done = subprocess.run([program, "-batch", "-"], input="\n".join(commands), text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  env=_ENVIRONMENT, timeout=COMMAND_LIMIT, check=False,
                                  pass_fds=[host.namespace.fd for host in self._hosts()])
        if done.returncode != 0:
            raise LabError(f"{program} could not do {commands}: {done.stdout}")

    def run_in_switch(self, *arguments):
        with self.switch.entered():
            subprocess.run(arguments, env=_ENVIRONMENT, stdin=subprocess.DEVNULL, check=True,
                           timeout=COMMAND_LIMIT)

    def start_rank(self, rank, world, host=None, **options):
        """natagg-allreduce in the host of that number, or in `host`. An option that is True is
        given without a value, one that is None not at all, a list as several values."""
        host = host or self.workers[rank]
        self._processes += 1
        pool = ",".join(aggregator.address for aggregator in self.aggregators)
        log = self.scratch / f"{host.name}.{self._processes}.log"
        arguments = [self.allreduce, "--json"]
        for name, value in {"aggregators": pool, "rank": rank, "world": world, **options}.items():
            if value is None:
                continue
            values = value if isinstance(value, list) else [] if value is True else [value]
            arguments += [f"--{name.replace('_', '-')}", *values]
        return Rank(host.start(arguments, log))

    def start_ranks(self, world, **options):
        """All ranks at once. Of an option that is a function, each rank gets its own value."""
        return [self.start_rank(rank, world, **{
            name: value(rank) if callable(value) else value for name, value in options.items()})
            for rank in range(world)]

    def all_reduce(self, world, limit=60, **options):
        """All ranks' reports, once all are done; raises when one fails."""
        deadline = time.monotonic() + limit
        ranks = self.start_ranks(world, **options)
        return [rank.done(max(deadline - time.monotonic(), 0.1)) for rank in ranks]


class Rank:
    """A natagg-allreduce process."""

    def __init__(self, process):
        self.process = process

    def ended(self, limit):
        """Exit status and report: what the tool says in JSON; {} when it says nothing."""
        status = self.process.wait(limit)
        lines = [line for line in self.process.text().splitlines() if line.startswith("{")]
        return status, json.loads(lines[-1]) if lines else {}

    def die(self):
        """As a machine does, without a word."""
        self.process.kill()
        self.process.wait(COMMAND_LIMIT)

    def done(self, limit):
        """The report of a rank that must succeed."""
        status, report = self.ended(limit)
        if status != 0:
            raise LabError(f"{self.process.name} ended with {status}:\n{self.process.text()}")
        return report


def wait_until(condition, limit, what, *processes):
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            logs = "".join(f"\n--- {process.name}\n{process.text()}" for process in processes)
            raise LabError(f"waited {limit} s for {what}{logs}")
        time.sleep(0.005)
