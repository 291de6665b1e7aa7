#!/usr/bin/python3
"""Real PyTorch clients at our store: every operation they have, and Gloo groups that meet there.

The cases are in scripts/: store_cases.py and gloo_cases.py, each run once per version of PyTorch.
The last line before unittest's counts them.
"""

import json
import subprocess
import sys
import unittest

from job import STORE_SERVER
from torch_harness import SCRIPTS, TorchTest, client

GROUP_SIZES = (2, 4)
# So many cases at least: fewer means that a script lost some on the way.
FEWEST = {
    ("old", "store_cases.py"): 40,
    ("new", "store_cases.py"): 63,
    ("old", "gloo_cases.py"): 30,
    ("new", "gloo_cases.py"): 30,
}

counts = {}  # Good cases by version of PyTorch.


def tearDownModule():
    lines = [f"torch {version}: {count} cases" for version, count in sorted(counts.items())]
    print("\n" + ", ".join(lines), file=sys.stderr)


class Store:
    """A store_server, for as long as the test runs."""

    def __init__(self, test):
        self.process = subprocess.Popen(
            [STORE_SERVER],
            env=test.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        test.addCleanup(self.close)
        self.port = int(self.process.stdout.readline())

    def close(self):
        """Lets it end by itself: a crash, and a sanitizer's report, show in its exit code."""
        self.process.communicate()
        if self.process.returncode != 0:
            raise AssertionError(f"store_server ended with {self.process.returncode}")


class StoreClients(TorchTest):
    def check(self, age, script, *arguments):
        """Runs a script's cases; those that went wrong are failures of their own."""
        pytorch = client(age)
        finished = self.finish(self.launch([pytorch.python, SCRIPTS / script, *arguments]))
        cases = [json.loads(line) for line in finished.lines("case ")]
        for case in cases:
            with self.subTest(case["name"], torch=pytorch.version):
                self.assertIsNone(case["problem"], case["problem"])
        good = sum(case["problem"] is None for case in cases)
        counts[pytorch.version] = counts.get(pytorch.version, 0) + good
        self.assertGreaterEqual(len(cases), FEWEST[age, script])

    def check_store(self, age):
        self.check(age, "store_cases.py", Store(self).port)

    def check_groups(self, age):
        meetings = [f"{size}:{Store(self).port}" for size in GROUP_SIZES]
        self.check(age, "gloo_cases.py", *meetings)

    def test_old_client(self):
        self.check_store("old")

    def test_new_client(self):
        self.check_store("new")

    def test_old_groups(self):
        self.check_groups("old")

    def test_new_groups(self):
        self.check_groups("new")


if __name__ == "__main__":
    unittest.main()
