#!/usr/bin/python3
"""The example that trains on digits: under muster, killed under muster, and under torchrun.

One PyTorch must come to the same weights, to the bit, every time.
"""

import json
import sys
import unittest

from job import MUSTER, ROOT
from torch_harness import TorchTest, client

DIGITS = ROOT / "examples/digits"
WORKERS = 4


class Digits(TorchTest):
    def weights_by_demo(self, pytorch, killed_rank):
        """What the demo's two runs came to. That they are equal, and good, is its own affair."""
        results = self.folder / "demo"
        demo = [sys.executable, DIGITS / "demo.py", "--muster", MUSTER, "--python", pytorch.python]
        shown = self.finish(
            self.launch([*demo, "--out", results, "--kill-rank", str(killed_rank)])
        )
        self.assertIn(f"sent SIGKILL to rank {killed_rank}", shown.out)
        self.assertIn(f"Workers run with {pytorch.python}", shown.out)
        runs = {
            name: json.loads((results / name / "result.json").read_text())
            for name in ("undisturbed", "killed")
        }
        self.assertEqual(runs["undisturbed"]["first_epoch"], 0)
        self.assertGreater(runs["killed"]["first_epoch"], 0)
        return {name: run["sha256"] for name, run in runs.items()}

    def weights_by_torchrun(self, pytorch):
        results = self.folder / "torchrun"
        self.finish(
            self.torchrun(
                pytorch, f"--nproc_per_node={WORKERS}", DIGITS / "train.py", "--out", results
            )
        )
        return json.loads((results / "result.json").read_text())["sha256"]

    def check(self, age, killed_rank):
        pytorch = client(age)
        weights = self.weights_by_demo(pytorch, killed_rank)
        weights["torchrun"] = self.weights_by_torchrun(pytorch)
        self.assertEqual(len(set(weights.values())), 1, weights)

    def test_with_the_old_pytorch_losing_a_worker(self):
        self.check("old", killed_rank=2)

    def test_with_the_new_pytorch_losing_the_worker_that_saves(self):
        self.check("new", killed_rank=0)


if __name__ == "__main__":
    unittest.main()
