"""Keeper, agent, both, a worker or what a worker left, killed with SIGKILL at seeded times: nothing of the job is left.

MUSTER_KILLS says how many trials are run (50), MUSTER_SEED which; MUSTER_KILL_LOG names a file that gets each result.
Needs root, for PID namespaces.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import unittest

from job import needs_root

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MUSTER_BUILD", ROOT / "build/dev"))
MUSTER = BUILD / "launcher/muster"
TRIALS = int(os.environ.get("MUSTER_KILLS", "50"))
SEED = int(os.environ.get("MUSTER_SEED", "20261129"))
LOG = os.environ.get("MUSTER_KILL_LOG")
ALLOWED = 1.0  # Seconds.
STOP_WINDOW = 0.05  # A stop is killed at most so long after its signal.


def trial(phase, victim, after, workers=4):
    own_memory = ["sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh"]  # Whatever is left there goes too.
    command = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", *own_memory, sys.executable, "-I",
               str(pathlib.Path(__file__).with_name("kill_trial.py")), "--muster", str(MUSTER), "--phase", phase,
               "--victim", victim, "--after", str(after), "--workers", str(workers)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if run.returncode != 0:
        raise AssertionError(f"the trial itself failed: {run.stderr}")
    return json.loads(run.stdout)


@needs_root
class Kills(unittest.TestCase):
    def test_nothing_is_left(self):
        start = sorted(trial("start", "nobody", 0)["start"] for _ in range(3))[1]
        chance = random.Random(SEED)
        slowest = {}
        with open(LOG or os.devnull, "a") as log:
            for number in range(TRIALS):
                phase = chance.choice(["start", "start", "restart", "stop"])
                victim = chance.choice(["keeper", "agent", "keeper", "agent", "both", "worker", "grandchild"])
                if victim in ("worker", "grandchild"):
                    phase = "start"  # The others leave when they are asked.
                window = STOP_WINDOW if phase == "stop" else 2 * start
                after = chance.uniform(0, window)
                workers = chance.choice([4, 4, 24])
                result = trial(phase, victim, after, workers)
                print(json.dumps({"trial": number, **result}), file=log)
                with self.subTest(seed=SEED, trial=number, phase=phase, victim=victim, after=after):
                    self.assertIsNotNone(result["gone"], result)
                    self.assertLess(result["gone"], ALLOWED, result)
                    self.assertFalse(result["two_holders"], result)
                    if victim != "both":
                        self.assertEqual(result["left"], [])
                        self.assertEqual(result["folders"], [])
                slowest[victim] = max(slowest.get(victim, 0), result["gone"] or float("inf"))
        worst = ", ".join(f"{victim} {seconds * 1000:.0f} ms" for victim, seconds in sorted(slowest.items()))
        print(f"{TRIALS} kills, seed {SEED}, start takes {start * 1000:.0f} ms; slowest until nothing was left: {worst}")


if __name__ == "__main__":
    unittest.main()
