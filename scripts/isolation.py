# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""Runs the rest of a program where nothing it starts, mounts or configures can outlive it.

The program goes on as process 1 of new PID, network and mount namespaces, and as root of a new user
namespace where it is not root already. When it ends, however it ends, the kernel kills all
processes in there and forgets all interfaces and mounts.
"""

import contextlib
import ctypes
import os
import resource
import signal
import sys

# linux/sched.h, sys/mount.h, sys/prctl.h
_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
_CLONE_NEWNET = 0x40000000
_MS_REC = 0x4000
_MS_PRIVATE = 0x40000
_PR_SET_PDEATHSIG = 1

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result, call):
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{call}: {os.strerror(error)}")


def _mount(source, target, kind, flags=0):
    _check(_libc.mount(source.encode(), os.fsencode(target), kind.encode(), flags, None),
           f"mount of {target}")


def lockable_bytes():
    """Memory that programs in here may lock."""
    hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (hard, hard))
    # Root of a user namespace is bound by the limit as its user is.
    with open("/proc/self/uid_map", encoding="ascii") as file:
        everyone = int(file.read().split()[2]) == 0xFFFFFFFF
    return sys.maxsize if everyone or hard == resource.RLIM_INFINITY else hard


class NetworkNamespace:
    """A network namespace that lives as long as this object or anything inside it."""

    def __init__(self):
        with self._restored():
            _check(_libc.unshare(_CLONE_NEWNET), "unshare")
            self.fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    def close(self):
        os.close(self.fd)

    @contextlib.contextmanager
    def entered(self):
        """Processes started and sockets made meanwhile are inside."""
        with self._restored():
            _check(_libc.setns(self.fd, _CLONE_NEWNET), "setns")
            yield

    @staticmethod
    @contextlib.contextmanager
    def _restored():
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield
        finally:
            _check(_libc.setns(before, _CLONE_NEWNET), "setns")
            os.close(before)


def isolate(scratch):
    """Returns in the isolated process only. `scratch` is a directory, made where it is missing, that
    is empty in there and whose contents vanish at the end."""
    os.makedirs(scratch, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    _unshare()
    child = os.fork()
    if child != 0:
        _wait_for(child)
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    for number in _SIGNALS:
        signal.signal(number, _end)
    _mount("none", "/", "none", _MS_REC | _MS_PRIVATE)
    _mount("tmpfs", scratch, "tmpfs")
    # Containers may refuse a new /proc; the one there is serves as well.
    with contextlib.suppress(OSError):
        _mount("proc", "/proc", "proc")


def _unshare():
    namespaces = _CLONE_NEWNS | _CLONE_NEWPID | _CLONE_NEWNET
    user, group = os.getuid(), os.getgid()
    if _libc.unshare(namespaces) == 0:
        return
    try:
        _check(_libc.unshare(namespaces | _CLONE_NEWUSER), "unshare")
    except OSError as error:
        sys.exit(f"{sys.argv[0]}: this machine allows no network namespaces here ({error}); try as "
                 "root, or in a container with more privileges")
    # An ordinary user may map itself alone, and that only without a say over groups.
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"),
                       ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def _end(number, _frame):
    for other in _SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)


def _wait_for(child):
    """Passes signals on and ends as the child does."""
    for number in _SIGNALS:
        signal.signal(number, lambda received, _: os.kill(child, received))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os._exit(status if status >= 0 else 128 - status)
