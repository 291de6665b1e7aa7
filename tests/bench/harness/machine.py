"""The machine that figures were taken on: what matters for them, no names."""

import datetime
import os
import platform
import re
import subprocess

HERE = os.path.dirname(__file__)


def _first(path, pattern, otherwise="unknown"):
    try:
        with open(path, encoding="utf-8") as file:
            found = re.search(pattern, file.read(), re.MULTILINE)
    except OSError:
        return otherwise
    return found.group(1).strip() if found else otherwise


def _release(kernel):
    """The version alone: what a provider appends to it is his."""
    return re.match(r"[\d.]+", kernel).group(0)


def describe(programs):
    memory_kib = int(_first("/proc/meminfo", r"^MemTotal:\s+(\d+)", "0"))
    hypervisor = bool(re.search(r"\bhypervisor\b", _first("/proc/cpuinfo", r"^flags\s*:(.*)$", "")))
    return {
        "cpu": _first("/proc/cpuinfo", r"^model name\s*:(.*)$", platform.machine()),
        "cores": len(os.sched_getaffinity(0)),
        "virtual": hypervisor,
        "memory_gib": round(memory_kib / (1 << 20)),
        "kernel": _release(platform.release()),
        "system": _first("/etc/os-release", r'^PRETTY_NAME="?([^"\n]+)'),
        "compiler": _first_line(["g++", "--version"]),
        "build_type": _first(programs.build / "CMakeCache.txt", r"^CMAKE_BUILD_TYPE:\w+=(.*)$"),
        "commit": _first_line(["git", "-C", HERE, "rev-parse", "--short", "HEAD"]),
        "date": datetime.date.today().isoformat(),
        "load_before": round(os.getloadavg()[0], 2),
        "realtime": os.sched_getscheduler(0) == os.SCHED_RR,
        "names": os.environ.get("MUSTER_BENCH_NAMES", "as the system's"),
    }


def _first_line(command):
    try:
        run = subprocess.run(command, check=True, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return run.stdout.splitlines()[0]
