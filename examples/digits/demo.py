#!/usr/bin/env python3
"""Shows what a killed worker costs: trains the digits under muster, undisturbed and with a SIGKILL.

    examples/digits/demo.py --muster build/release/launcher/muster

Both runs train with four workers. In the second one a worker is killed in the middle of an epoch;
muster starts the group again, and the job goes on from its checkpoint. The demo ends with 0 only if
the second attempt began at a later epoch than 0, the weights of both runs are the same to the bit,
and the network recognises 95 % of the test digits.
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

WORKERS = 4
TRAIN = Path(__file__).resolve().with_name("train.py")
MARK = "MUSTER_DEMO"  # In the environment of all that a run starts; its value is that run's alone.
LEAST_ACCURACY = 0.95


class Broken(Exception):
    """What the demo claims does not hold."""


def marked_processes(mark):
    """The environment of each living process of a run, by pid."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            pairs = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
        except OSError:  # It ended meanwhile, or belongs to someone else.
            continue
        environment = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        if environment.get(MARK) == mark:
            found[int(folder.name)] = environment
    return found


def kill_worker(mark, rank):
    pids = [pid for pid, env in marked_processes(mark).items() if env.get("RANK") == str(rank)]
    if len(pids) != 1:
        raise Broken(f"expected one process with RANK={rank}, found {pids}")
    os.kill(pids[0], signal.SIGKILL)
    return pids[0]


class Run:
    """One run of the job under muster: shows its lines and kills a worker when a step shows."""

    def __init__(self, options, out, flags=()):
        self.out = out
        self.mark = uuid.uuid4().hex
        self.command = [options.muster, "--nproc-per-node", str(WORKERS), *flags]
        self.command += [str(TRAIN), "--out", str(out)]
        self.environment = {**os.environ, MARK: self.mark, "PYTHON_EXEC": options.python}
        self.deadline = options.deadline
        self.starts = 0  # How often rank 0 said that it starts.
        self.outage = None  # Seconds from the kill to the next attempt's first line.
        self.seconds = None

    def go(self, kill_at_step=None, kill_rank=None):
        """Runs the job to its end and returns what it wrote to result.json."""
        print(f"$ {shlex.join(self.command)}", flush=True)
        began = time.monotonic()
        killed_at = None
        muster = subprocess.Popen(
            self.command, env=self.environment, stdout=subprocess.PIPE, text=True
        )
        watchdog = threading.Timer(self.deadline, muster.terminate)
        watchdog.start()
        try:
            for line in muster.stdout:
                print("    " + line, end="", flush=True)
                if "starting at epoch" in line:
                    self.starts += 1
                    if killed_at is not None and self.outage is None:
                        self.outage = time.monotonic() - killed_at
                if killed_at is None and f" step {kill_at_step} " in line:
                    pid = kill_worker(self.mark, kill_rank)
                    killed_at = time.monotonic()
                    print(f"--- sent SIGKILL to rank {kill_rank}, pid {pid}", flush=True)
            code = muster.wait()
        finally:
            watchdog.cancel()
            if muster.poll() is None:  # Only when something went wrong above.
                muster.terminate()
                muster.wait()
        self.seconds = time.monotonic() - began
        if code != 0:
            late = self.seconds >= self.deadline
            why = f" (stopped after {self.deadline:.0f} s)" if late else ""
            raise Broken(f"muster ended with exit code {code}{why}")
        if kill_at_step is not None and killed_at is None:
            raise Broken(f"step {kill_at_step} never showed, so no worker was killed")
        if left := marked_processes(self.mark):
            raise Broken(f"processes are left after the run: {sorted(left)}")
        return json.loads((self.out / "result.json").read_text())


def demonstrate(options, folder):
    quiet = Run(options, folder / "undisturbed")
    print("\n1. The job, left alone")
    undisturbed = quiet.go()

    rough = Run(options, folder / "killed", flags=("--max-restarts", "1"))
    step, rank = options.kill_at_step, options.kill_rank
    print(f"\n2. The same job; rank {rank} is killed when step {step} shows")
    killed = rough.go(kill_at_step=step, kill_rank=rank)

    print(f"""
                     left alone    killed
    seconds          {quiet.seconds:10.1f}{rough.seconds:10.1f}
    attempts         {quiet.starts:10}{rough.starts:10}
    last began at {undisturbed["first_epoch"]:13}{killed["first_epoch"]:10}    (epoch)
    test accuracy    {undisturbed["accuracy"]:10.2%}{killed["accuracy"]:10.2%}
    weights' sha256  {undisturbed["sha256"][:8]:>10}{killed["sha256"][:8]:>10}    (first digits)

    From the kill to the first line of the next attempt: {rough.outage or 0:.2f} s
    (a Python worker needs most of that to import torch).
""")
    if rough.starts != 2:
        raise Broken(f"expected 2 attempts in the second run, saw {rough.starts}")
    if killed["first_epoch"] == 0:
        raise Broken("the second attempt began at epoch 0: it used no checkpoint")
    if killed["sha256"] != undisturbed["sha256"]:
        raise Broken("the weights of the two runs differ")
    if undisturbed["accuracy"] < LEAST_ACCURACY:
        raise Broken(f"the test accuracy is below {LEAST_ACCURACY:.0%}")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--muster", required=True, help="the launcher")
    parser.add_argument(
        "--python",
        default=os.environ.get("PYTHON_EXEC", "/usr/bin/python3"),
        help="the Python of the workers, with torch (default: PYTHON_EXEC, else %(default)s)",
    )
    parser.add_argument("--out", type=Path, help="keep checkpoints and results in this new folder")
    parser.add_argument(
        "--kill-at-step", type=int, default=130, metavar="N", help="a multiple of 10 (%(default)s)"
    )
    parser.add_argument("--kill-rank", type=int, default=2, choices=range(WORKERS))
    parser.add_argument(
        "--deadline", type=float, default=300, metavar="SECONDS", help="for each run (%(default)s)"
    )
    return parser.parse_args()


def main():
    options = parse_options()
    if shutil.which(options.muster) is None:
        sys.exit(f"demo: {options.muster} is no program: build muster first, or correct --muster")
    question = "import torch, platform; print(torch.__version__, platform.python_version())"
    asked = subprocess.run([options.python, "-c", question], capture_output=True, text=True)
    if asked.returncode != 0:
        sys.exit(
            f"demo: {options.python} cannot import torch: install python3-torch, or name another "
            f"Python with --python\n{asked.stderr}"
        )
    torch_version, python_version = asked.stdout.split()
    print(f"Workers run with {options.python}: Python {python_version}, torch {torch_version}")

    try:
        if options.out:
            options.out.mkdir(parents=True)
            demonstrate(options, options.out)
        else:
            with tempfile.TemporaryDirectory(prefix="muster-demo-") as folder:
                demonstrate(options, Path(folder))
    except FileExistsError:
        sys.exit(f"demo: {options.out} is there already; name a new folder, none is resumed")
    except Broken as reason:
        sys.exit(f"demo: FAILED: {reason}")
    print("demo: the killed job ended with the same weights, to the bit, as the undisturbed one")


if __name__ == "__main__":
    main()
