"""Launchers with native workers: latency, wall time, restart, memory, output."""

import dataclasses
import random

SHELL = 'i=0; while [ $i -lt "$1" ]; do "$0" exit & i=$((i + 1)); done; wait'
LINE_BYTES = 100
PRINTERS = 8
PRINT_OF_MANY = f"print of {PRINTERS}"
POLL_PHASE_MS = 100  # torchrun looks at its workers at this interval: deaths are spread over it.
SEED = 20


@dataclasses.dataclass(frozen=True)
class Plan:
    workers: tuple
    repetitions: int        # Of muster and of the shell, in turns.
    peer_repetitions: int   # Of each torchrun, spread between those.
    restarts: int
    peer_restarts: int
    memories: int
    print_mib: int
    prints: int


FULL = Plan(workers=(2, 8, 32), repetitions=21, peer_repetitions=3, restarts=15, peer_restarts=5,
            memories=3, print_mib=200, prints=5)
QUICK = Plan(workers=(2,), repetitions=2, peer_repetitions=0, restarts=2, peer_restarts=0,
             memories=1, print_mib=2, prints=1)


def launchers(programs, with_peer=True):
    """Name to a function that makes the command for (workers, act, more flags)."""
    worker = programs.stamp_worker

    def muster(workers, act, *flags):
        return [programs.muster, "--standalone", "--nproc-per-node", str(workers), *flags,
                worker, *act]

    def torchrun(program):
        def command(workers, act, *flags):
            # 1.13 knows them with underscores only.
            flags = ["--" + flag[2:].replace("-", "_") if flag.startswith("--") else flag
                     for flag in flags]
            return [*program, "--standalone", "--nproc_per_node", str(workers), *flags,
                    "--no_python", worker, *act]
        return command

    found = {"muster": muster}
    if with_peer and programs.torch_new:
        found["torchrun 2.15"] = torchrun(programs.torchrun_new())
    if with_peer and programs.torch_old:
        found["torchrun 1.13"] = torchrun(programs.torchrun_old())
    return found


def shell(programs, workers):
    return [programs.dash, "-c", SHELL, programs.stamp_worker, str(workers)]


def run(programs, journal, plan, with_peer=True):
    found = launchers(programs, with_peer)
    starts(programs, journal, plan, found)
    restarts(programs, journal, plan, found)
    memory(programs, journal, plan, found)
    prints(programs, journal, plan, found)


def is_peers_turn(name, repetition, of_all, of_peers):
    """Peers are slow: their few repetitions are spread evenly over ours."""
    def peer_runs(repetitions):
        return repetitions * of_peers // of_all

    return name == "muster" or peer_runs(repetition) != peer_runs(repetition - 1)


def starts(programs, journal, plan, found):
    for workers in plan.workers:
        journal.say(f"launch: {workers} workers that exit at once")
        for repetition in range(plan.repetitions):
            about = {"part": "start", "workers": workers, "repetition": repetition}
            measure = [programs.launch_bench, "start", "--workers", str(workers), "--"]
            for name, command in found.items():
                if is_peers_turn(name, repetition, plan.repetitions, plan.peer_repetitions):
                    journal.take(about | {"launcher": name}, measure + command(workers, ["exit"]))
                if name == "muster" and programs.dash:
                    journal.take(about | {"launcher": "dash"}, measure + shell(programs, workers))


def restarts(programs, journal, plan, found):
    journal.say("launch: one of 4 workers killed")
    phase = random.Random(SEED)
    for repetition in range(plan.restarts):
        for name, command in found.items():
            if not is_peers_turn(name, repetition, plan.restarts, plan.peer_restarts):
                continue
            settle = 200 + phase.randrange(POLL_PHASE_MS)
            measure = [programs.launch_bench, "restart", "--workers", "4",
                       "--settle-ms", str(settle), "--"]
            journal.take({"part": "restart", "launcher": name, "repetition": repetition},
                         measure + command(4, ["stay"], "--max-restarts", "1"))


def memory(programs, journal, plan, found):
    workers = max(count for count in plan.workers if count <= 8)
    journal.say(f"launch: memory with {workers} workers")
    for repetition in range(plan.memories):
        for name, command in found.items():
            if name != "muster" and not plan.peer_repetitions:
                continue
            about = {"part": "memory", "launcher": name, "workers": workers}
            measure = [programs.launch_bench, "memory", "--workers", str(workers), "--"]
            journal.take(about | {"repetition": repetition}, measure + command(workers, ["stay"]))


def prints(programs, journal, plan, found):
    journal.say(f"launch: {plan.print_mib} MiB of lines, inherited and through tee")
    lines = plan.print_mib * (1 << 20) // LINE_BYTES
    print_lines(programs, journal, plan, found, "print", 1, ["print", str(lines)])
    print_lines(programs, journal, plan, found, PRINT_OF_MANY, PRINTERS,
                ["print-all", str(lines // PRINTERS)])


def print_lines(programs, journal, plan, found, part, workers, act):
    lines = str(workers * int(act[1]))
    measure = [programs.launch_bench, "print", "--workers", str(workers), "--lines", lines, "--"]
    for repetition in range(plan.prints):
        for name, command in found.items():
            if name != "muster" and repetition >= plan.peer_repetitions:
                continue
            for way, flags in (("inherited", ()), ("tee", ("--tee", "3"))):
                about = {"part": part, "launcher": name, "way": way, "repetition": repetition}
                journal.take(about, measure + command(workers, act, *flags))
