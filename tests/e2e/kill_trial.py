#!/usr/bin/python3
"""One trial of kill_test.py: the first process of a PID namespace of its own.

Starts a job, kills keeper, agent or both with SIGKILL after a time, and looks how long it takes until nobody else is left
in the namespace: the kernel's own list of processes, which nothing can hide from. Prints the result as JSON.
"""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

PATIENCE = 30  # Seconds until a trial is given up.


def others():
    """Every process of the namespace but this one, zombies that nobody has reaped left out."""
    found = {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            stat = pathlib.Path(entry.path, "stat").read_text()
        except OSError:
            continue
        name, state = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2]
        if state != "Z":
            found[int(entry.name)] = name
    return found


def is_worker(pid):
    """Whether it is a worker's main process: the leader of a session, with a rank."""
    try:
        leads = pid == os.getsid(pid)
        return leads and b"\0RANK=" in pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


def reap():
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return


def children_of(pid):
    try:
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def wait_until(condition, patience):
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > patience:
            return None
        reap()
        time.sleep(0.001)
    return time.monotonic() - began


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--muster", required=True)
    parser.add_argument("--phase", choices=["start", "restart", "stop"], required=True)
    parser.add_argument("--victim", choices=["keeper", "agent", "both", "worker", "grandchild", "nobody"], required=True)
    parser.add_argument("--after", type=float, required=True, help="seconds from the phase's beginning")
    parser.add_argument("--workers", type=int, default=4)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        marks = pathlib.Path(folder, "marks")
        marks.touch()
        started = lambda: len(marks.read_text().split())
        behaviour = {"start": "stay", "restart": "fail", "stop": "stubborn"}[arguments.phase]
        worker = pathlib.Path(__file__).with_name("workers") / "orphaner.sh"
        restarts = "1000" if arguments.phase == "restart" else "0"
        began = time.monotonic()
        keeper = os.posix_spawn(
            arguments.muster,
            [arguments.muster, "--log-level", "off", "--shutdown-timeout", "20", "--max-restarts", restarts,
             "--nproc-per-node", str(arguments.workers), str(worker), str(marks), behaviour],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_OPEN, 2, os.path.join(folder, "err"), os.O_CREAT | os.O_WRONLY, 0o600)],
        )
        result = {"phase": arguments.phase, "victim": arguments.victim, "after": arguments.after}
        if arguments.phase != "start":
            wait_until(lambda: started() >= arguments.workers, PATIENCE)
            began = time.monotonic()
        if arguments.victim == "nobody":
            wait_until(lambda: started() >= arguments.workers, PATIENCE)
            result["start"] = time.monotonic() - began
            os.kill(keeper, signal.SIGKILL)
        else:
            if arguments.phase == "stop":
                os.kill(keeper, signal.SIGTERM)
            while time.monotonic() - began < arguments.after:
                pass
            descendants = lambda: [pid for pid in others() if pid not in (keeper, *children_of(keeper))]
            candidates = {
                "keeper": lambda: [keeper],
                "agent": lambda: children_of(keeper),
                "both": lambda: children_of(keeper) and [keeper, *children_of(keeper)],
                "worker": lambda: [pid for pid in descendants() if is_worker(pid)][:1],
                "grandchild": lambda: [pid for pid in descendants() if not is_worker(pid)][:1],
            }[arguments.victim]
            pids = []
            wait_until(lambda: pids or pids.extend(candidates()) or pids, PATIENCE)
            result["killed"] = len(pids)
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if arguments.victim == "grandchild":  # The job goes on without it.
                os.kill(keeper, signal.SIGTERM)
        # Where both were killed the parent-death signal is all that is left: it ends workers, not what they started.
        left = lambda: [pid for pid in others() if arguments.victim != "both" or is_worker(pid)]
        result["gone"] = wait_until(lambda: not left(), PATIENCE)
        result["left"] = sorted(others().values())
        result["folders"] = sorted(os.listdir("/dev/shm"))  # Our own: the trial is mounted one.
        result["started"] = started()
        result["two_holders"] = pathlib.Path(f"{marks}.violations").exists()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
