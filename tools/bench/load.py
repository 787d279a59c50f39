# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""How much of the machine others use while something is measured."""

import os
import time

_TICKS = os.sysconf("SC_CLK_TCK")
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD


class ForeignLoad:
    """CPU time of processes that are not in this PID namespace, and what a hypervisor took. Kernel
    threads do not count: they may work for what is measured."""

    def __init__(self):
        """Before isolation.isolate(), to see what is outside."""
        self._proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._last = (0.0, 0.0)

    def begin(self):
        self._last = (time.monotonic(), self._seconds())

    def share(self):
        """Since begin(), of all cores; 1 is all of them."""
        elapsed = time.monotonic() - self._last[0]
        used = self._seconds() - self._last[1]
        return max(used, 0.0) / (elapsed * os.cpu_count())

    def _seconds(self):
        own = os.readlink("self/ns/pid", dir_fd=self._proc)
        ticks = self._stolen()
        for name in os.listdir(self._proc):
            if name.isdigit():
                ticks += self._ticks(name, own)
        return ticks / _TICKS

    def _read(self, name):
        file = os.open(name, os.O_RDONLY, dir_fd=self._proc)
        try:
            return os.read(file, 4096).decode(errors="replace")
        finally:
            os.close(file)

    def _stolen(self):
        """The eighth number of "cpu ..."."""
        return int(self._read("stat").split("\n", 1)[0].split()[8])

    def _ticks(self, pid, own):
        """With those of its ended children, so that nothing is lost when a process ends."""
        try:
            fields = self._read(f"{pid}/stat").rpartition(")")[2].split()
            if int(fields[6]) & _KERNEL_THREAD:
                return 0
            if os.readlink(f"{pid}/ns/pid", dir_fd=self._proc) == own:
                return 0
        except PermissionError:
            pass  # somebody else's
        except OSError:
            return 0  # it has ended
        return sum(int(field) for field in fields[11:15])
