#!/usr/bin/python3
"""Who may include and call what: the boundaries between the folders, kept by a search through the
sources.

The cores stay pure (no system call, clock, thread, lock, log or randomness), system calls stay in
base/posix, the environment and randomness are read by main.cpp, and each folder includes only what
lies below it.
"""

import pathlib
import re
import sys
import unittest
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = (
    "base",
    "rendezvous",
    "agent",
    "launcher",
    "worker_sdk",
)  # Ours; tests and examples may do more.
ANY_INCLUDE = r'^\s*#\s*include\s*[<"]'


class Rule(NamedTuple):
    """Lines that match `refused` are wrong in the files that match `files`."""

    says: str
    files: str
    refused: str
    bad: tuple[str, str]  # A file and a line of it that the rule must refuse: shows that it can.
    good: tuple[str, str]  # One of the same kind that it must leave alone.


def may_include(folder: str, *below: str) -> Rule:
    """`folder` includes of our own headers only its own and those of `below`."""
    allowed = "|".join(re.escape(name) + "/" for name in (folder, *below))
    ours = "|".join(FOLDERS)
    outsider = "worker_sdk" if folder == "launcher" else "launcher"
    return Rule(
        f"{folder} includes only itself and {', '.join(below) or 'nothing else of ours'}",
        rf"^{folder}/",
        rf'^\s*#\s*include\s*"(?!{allowed})({ours})/',
        (f"{folder}/a.cpp", f'#include "{outsider}/a.hpp"'),
        (f"{folder}/a.cpp", f'#include "{(below or (folder,))[0]}/a.hpp"'),
    )


CORES = r"^(rendezvous|agent)/core/"
PUBLIC = "worker_sdk/include/"  # Headers that stand alone, in programs of others.
RULES = (
    Rule(
        "cores include the standard library, base and themselves only",
        CORES,
        ANY_INCLUDE
        + r"(?![a-z_]+>|base/[a-z_]+\.hpp\"|rendezvous/core/|agent/core/|[a-z_]+\.hpp\")",
        ("agent/core/group.hpp", "#include <boost/asio/io_context.hpp>"),
        ("agent/core/group.hpp", '#include "base/ids.hpp"'),
    ),
    Rule(
        "cores do not use base/posix",
        CORES,
        ANY_INCLUDE + r"base/(posix|log)/",
        ("rendezvous/core/round.cpp", '#include "base/posix/fd.hpp"'),
        ("rendezvous/core/round.cpp", '#include "base/error.hpp"'),
    ),
    Rule(
        "cores know no thread, lock, file or stream",
        CORES,
        r"^\s*#\s*include\s*<(thread|mutex|shared_mutex|condition_variable|future|atomic|"
        r"semaphore|stop_token|filesystem|fstream|iostream|cstdio)>",
        ("rendezvous/core/round.cpp", "#include <mutex>"),
        ("rendezvous/core/round.cpp", "#include <map>"),
    ),
    Rule(
        "cores read no clock and no randomness: both are passed in",
        CORES,
        r"_clock::now\(|\brandom_device\b|\bclock_gettime\b|\bgetenv\b|\bs?rand\(|"
        r"\btime\((nullptr|NULL|0)\)",
        ("agent/core/group.cpp", "const auto now = std::chrono::steady_clock::now();"),
        ("agent/core/group.cpp", "std::chrono::steady_clock::time_point now;"),
    ),
    Rule(
        "the time of day is read in base/posix only; gRPC's deadlines are such times",
        r"^(?!base/posix/|rendezvous/server/control|launcher/ctl/)",
        r"system_clock::now\(",
        ("agent/run/agent.cpp", "const auto now = std::chrono::system_clock::now();"),
        ("agent/run/agent.cpp", "const auto now = std::chrono::steady_clock::now();"),
    ),
    Rule(
        "the environment and std::random_device are read in main.cpp only",
        rf"^(?!.*/main\.cpp$|{PUBLIC})",
        r"\b(secure_)?getenv\(|\benviron\b|\brandom_device\b",
        ("agent/run/agent.cpp", 'const char* home = std::getenv("HOME");'),
        ("launcher/main.cpp", 'const char* home = std::getenv("HOME");'),
    ),
    Rule(
        "headers of system calls are included in base/posix only",
        rf"^(?!base/posix/|{PUBLIC})",
        ANY_INCLUDE
        + r"(unistd|fcntl|poll|sched|spawn|dirent|netdb|pthread|signal|ifaddrs|linux/[a-z/_]+|"
        r"sys/(epoll|eventfd|file|ioctl|mman|pidfd|prctl|sendfile|signalfd|socket|"
        r"stat|syscall|timerfd|uio|wait))\.h",
        ("rendezvous/store/server.cpp", "#include <sys/epoll.h>"),
        ("rendezvous/store/server.cpp", "#include <netinet/in.h>"),  # For the shape of an address.
    ),
    Rule(
        "system calls are made in base/posix only",
        rf"^(?!base/posix/|{PUBLIC})",
        r"(^|[^\w>:])::(?!sigabbrev_np\()[a-z]\w*\(",
        ("agent/run/agent.cpp", "  if (::kill(pid, SIGKILL) != 0) return;"),
        ("base/posix/process.cpp", "  if (::kill(pid, SIGKILL) != 0) return;"),
    ),
    Rule(
        "generated protobuf headers are for .cpp files of server, client and ctl",
        r"^(?!(rendezvous/(server|client)|launcher/ctl)/.*\.cpp$)",
        ANY_INCLUDE + r".*\.pb\.h[>\"]",
        ("rendezvous/client/attendance.hpp", '#include "muster/v1/rendezvous.pb.h"'),
        ("rendezvous/client/attendance.cpp", '#include "muster/v1/rendezvous.pb.h"'),
    ),
    Rule(
        "single Asio headers are included, not all of it",
        r"",
        ANY_INCLUDE + r"boost/asio\.hpp>",
        ("agent/run/agent.cpp", "#include <boost/asio.hpp>"),
        ("agent/run/agent.cpp", "#include <boost/asio/io_context.hpp>"),
    ),
    Rule(
        "awaitable_operators costs seconds a file: .cpp files only",
        r"\.hpp$",
        ANY_INCLUDE + r"boost/asio/experimental/awaitable_operators\.hpp>",
        ("agent/run/agent.hpp", "#include <boost/asio/experimental/awaitable_operators.hpp>"),
        ("agent/run/agent.cpp", "#include <boost/asio/experimental/awaitable_operators.hpp>"),
    ),
    may_include("base"),
    may_include("worker_sdk/include"),
    may_include("rendezvous/core", "base"),
    may_include("rendezvous/store", "rendezvous/core", "base"),
    may_include("rendezvous/store_client", "base"),
    may_include("agent/core", "base"),
    may_include("rendezvous/client", "base"),
    may_include(
        "rendezvous/server", "rendezvous/core", "rendezvous/store", "rendezvous/client", "base"
    ),
    may_include(
        "rendezvous/daemon", "rendezvous/server", "rendezvous/client", "rendezvous/core", "base"
    ),
    may_include(
        "agent/run",
        "agent/core",
        "rendezvous/client",
        "rendezvous/store",
        "rendezvous/store_client",
        "base",
    ),
    may_include("launcher", "agent/run", "agent/core", "rendezvous", "base"),
)


def breaks(rule: Rule, path: str, line: str) -> bool:
    code = line if re.match(ANY_INCLUDE, line) else line.split("//")[0]
    return bool(re.search(rule.files, path) and re.search(rule.refused, code))


def sources():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".hpp", ".cpp"):
                yield path


def findings() -> list[str]:
    found = []
    for path in sources():
        name = path.relative_to(ROOT).as_posix()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found += [
                f"{name}:{number}: {rule.says}: {line.strip()}"
                for rule in RULES
                if breaks(rule, name, line)
            ]
    return found


class Layering(unittest.TestCase):
    def test_each_rule_refuses_what_it_should_and_no_more(self):
        for rule in RULES:
            with self.subTest(rule.says):
                self.assertTrue(breaks(rule, *rule.bad))
                self.assertFalse(breaks(rule, *rule.good))

    def test_the_search_sees_the_sources(self):
        self.assertIn(ROOT / "base/posix/fd.cpp", list(sources()))

    def test_the_sources_keep_the_rules(self):
        self.assertEqual(findings(), [])


if __name__ == "__main__":
    sys.exit(unittest.main())
