"""What --track-steps adds to a step of PyTorch's optimizers."""

import dataclasses
import pathlib

WORKER = pathlib.Path(__file__).parent.parent / "step_worker.py"


@dataclasses.dataclass(frozen=True)
class Plan:
    repetitions: int  # With and without, in turns.
    blocks: int       # Of steps, in one worker.


FULL = Plan(repetitions=5, blocks=100)
QUICK = Plan(repetitions=1, blocks=4)


def run(programs, journal, plan):
    for torch, python in (("2.15", programs.torch_new), ("1.13", programs.torch_old)):
        if not python:
            continue
        journal.say(f"steps: PyTorch {torch}")
        for repetition in range(plan.repetitions):
            for way, flags in (("plain", ()), ("tracked", ("--track-steps",))):
                journal.take({"part": "steps", "torch": torch, "way": way, "repetition": repetition},
                             [programs.muster, *flags, "--no-python", python, str(WORKER), way, str(plan.blocks)])
