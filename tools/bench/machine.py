# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

"""Where and with what the figures were measured."""

import os
import platform
import re
import subprocess
import time
from pathlib import Path


def _output(*command):
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, timeout=10,
                              check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _cpu():
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"^model name\s*: (.*)", text, re.MULTILINE)
    flags = re.search(r"^flags\s*: (.*)", text, re.MULTILINE)
    vectors = [flag for flag in ("avx2", "avx512f", "avx512bw")
               if flags and flag in flags.group(1).split()]
    return (model.group(1) if model else platform.machine()), vectors


def _package(name):
    return _output("dpkg-query", "--show", "--showformat=${Version}", name)


def machine(root):
    model, vectors = _cpu()
    revision = _output("git", "-C", str(root), "rev-parse", "--short=12", "HEAD")
    changed = _output("git", "-C", str(root), "status", "--porcelain", "--untracked-files=no")
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "cpu": model,
        "cpu_vectors": vectors,
        "cores": os.cpu_count(),
        "memory_GiB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "natagg": revision + (" with changes" if changed else ""),
        "dpdk": _package("libdpdk-dev"),
        "gloo": _package("libgloo0"),
        "open_mpi": _package("libopenmpi3"),
        "torch": _package("libtorch1.13"),
    }


def machine_text(about):
    lines = [f"{about['cores']} cores of {about['cpu']} ({', '.join(about['cpu_vectors'])}), "
             f"{about['memory_GiB']} GiB, Linux {about['kernel']}, {about['date']}",
             f"natagg {about['natagg']}"]
    for name, label in (("dpdk", "DPDK"), ("gloo", "Gloo"), ("open_mpi", "Open MPI"),
                        ("torch", "PyTorch")):
        if about.get(name):
            lines[-1] += f", {label} {about[name]}"
    return "\n".join(lines)
