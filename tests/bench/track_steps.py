#!/usr/bin/env python3
"""What --track-steps adds to an optimizer's step, for each PyTorch that is named: a small step with and without the
hook, in turns.

    track_steps.py --build build/release /usr/bin/python3 ~/.cache/muster/torch-2.15.0/bin/python
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

BUDGET = 5.0  # Microseconds a step.
TURNS = 5
WORKER = """
import time, torch
torch.set_num_threads(1)
weight = torch.nn.Parameter(torch.zeros(1))
weight.grad = torch.ones(1)
optimizer = torch.optim.SGD([weight], lr=0.1)

def block(steps=200):
    began = time.perf_counter()
    for _ in range(steps):
        optimizer.step()
    return (time.perf_counter() - began) / steps

block()
times = sorted(block() for _ in range(100))
print(torch.__version__, 1e6 * times[len(times) // 4])
"""


def step_time(muster, python, script, *flags):
    """The version of PyTorch, and microseconds a step: the lower quartile of a hundred blocks."""
    run = subprocess.run([muster, *flags, script], env={**os.environ, "PYTHON_EXEC": python}, capture_output=True,
                         text=True, check=False)
    if run.returncode != 0 or run.stderr:
        sys.exit(f"{python}: {run.stderr}")
    version, time = run.stdout.split()
    return version, float(time)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release", help="CMake build folder to measure")
    parser.add_argument("pythons", nargs="+", metavar="PYTHON")
    options = parser.parse_args()
    muster = pathlib.Path(options.build) / "launcher/muster"
    within = True
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "worker.py"
        script.write_text(WORKER, encoding="utf-8")
        for python in options.pythons:
            plain, tracked = [], []
            for _ in range(TURNS):
                version, time = step_time(muster, python, script)
                plain.append(time)
                tracked.append(step_time(muster, python, script, "--track-steps")[1])
            added = statistics.median(tracked) - statistics.median(plain)
            within = within and added <= BUDGET
            print(f"torch {version}: {statistics.median(plain):.2f} us a step, {added:+.2f} us with --track-steps "
                  f"(budget {BUDGET:.0f})")
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
