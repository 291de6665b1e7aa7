"""Several hosts on this machine, as network namespaces: tests/tools/netns-cluster.sh, one cluster a test."""

import functools
import itertools
import os
import shutil
import subprocess
import unittest

from job import PATIENCE, ROOT

SCRIPT = ROOT / "tests/tools/netns-cluster.sh"
NUMBERS = itertools.count()


@functools.cache
def missing():
    """Why there can be no cluster here, or None."""
    if os.geteuid() != 0:
        return "needs root, for network namespaces"
    programs = [name for name in ("ip", "bridge", "nft", "nsenter", "unshare") if not shutil.which(name)]
    return f"needs {', '.join(programs)}: run ./x setup test" if programs else None


def needs_cluster():
    """Skips where there can be none; with CI=true that is a failure."""
    why = missing()
    if why is None:
        return
    if os.environ.get("CI") == "true":
        raise AssertionError(why)
    raise unittest.SkipTest(why)


class Cluster:
    """Hosts h0 to h(N-1), in a network of their own. Each has a name, addresses, a machine id and a /dev/shm; files and
    process numbers are the machine's. Taken down at the test's end, with all that still runs on them."""

    def __init__(self, test, hosts):
        needs_cluster()
        self.hosts = hosts
        self.name = f"muster{os.getpid()}-{next(NUMBERS)}"
        test.addCleanup(self.do, "down")
        self.do("up", hosts)

    def do(self, *command):
        """One command of netns-cluster.sh; returns what it says."""
        run = subprocess.run([SCRIPT, *map(str, command)], env={**os.environ, "NETNS_CLUSTER": self.name},
                             capture_output=True, text=True, timeout=PATIENCE, check=False)
        if run.returncode != 0:
            raise AssertionError(f"netns-cluster.sh {' '.join(map(str, command))}: {run.stdout}{run.stderr}")
        return run.stdout

    def on(self, host):
        """What to put before a command so that it runs on that host, as the same process."""
        return ["env", f"NETNS_CLUSTER={self.name}", str(SCRIPT), "exec", str(host)]

    def run(self, host, *command):
        """A command on that host, to its end; returns what it says."""
        run = subprocess.run([*self.on(host), *map(str, command)], capture_output=True, text=True, timeout=PATIENCE,
                             check=False)
        if run.returncode != 0:
            raise AssertionError(f"on host {host}: {' '.join(map(str, command))}: {run.stdout}{run.stderr}")
        return run.stdout

    def filter(self, host, rule=None, kind="type filter hook output priority 0"):
        """One rule of that host's firewall, for what it sends, instead of the one that was given before."""
        text = f"table ip t {{\n chain c {{\n {kind};\n {rule}\n }}\n}}\n" if rule else ""
        self.run(host, "sh", "-c", 'nft flush ruleset && printf "%s" "$1" | nft -f -', "sh", text)

    @staticmethod
    def address(host):
        return f"10.77.0.{10 + host}"

    def cut(self, host, way="silent"):
        self.do("cut", host, way)

    def split(self, one, other):
        self.do("split", one, other)

    def heal(self, host="all"):
        self.do("heal", host)

    def crash(self, host):
        """A power cut: nobody hears of it."""
        self.do("crash", host)
