"""Many nodes: agents that meet, restart, are lost and join, beside torchrun's; and a server under thousands of agents."""

import contextlib
import dataclasses
import os
import pathlib
import select
import signal
import socket
import subprocess
import tempfile
import time

from harness import servers, tools

TOGETHER = 'n=$1; shift; while [ "$n" -gt 0 ]; do "$@" & n=$((n - 1)); done; wait'
LEASE_S = 2  # Where its end is waited for.
SILENT_BUDGET_S = 1.25 * LEASE_S + 1
PEER_PATIENCE_S = 110  # torchrun's own timeouts add up to 42 s for a loss, and to 70 s for a join that fails.
PATIENCE_S = 30


@dataclasses.dataclass(frozen=True)
class Plan:
    agents: tuple            # Of the jobs that start.
    repetitions: int
    peer_repetitions: int
    restarts: int
    changes: int             # Losses and joins, of each kind.
    peer_changes: int
    crowds: tuple            # Of (agents, repetitions).
    rest_s: float


FULL = Plan(agents=(2, 8, 16), repetitions=11, peer_repetitions=2, restarts=11, changes=7, peer_changes=1,
            crowds=((1_000, 5), (10_000, 3)), rest_s=10)
QUICK = Plan(agents=(2,), repetitions=2, peer_repetitions=0, restarts=1, changes=1, peer_changes=0,
             crowds=((50, 1),), rest_s=0.5)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def node_commands(programs, with_peer):
    """Name to a function that makes the command of one node for (port, --nnodes, workers, act, more flags)."""
    def flags(port, nnodes, workers):
        return ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "bench",
                "--nnodes", nnodes, "--nproc-per-node", str(workers)]

    def muster(port, nnodes, workers, act, *more):
        return [programs.muster, *flags(port, nnodes, workers), *more, programs.stamp_worker, act]

    def torchrun(program):
        def command(port, nnodes, workers, act, *more):
            # 1.13 knows them with underscores only.
            own = [flag.replace("-", "_").replace("__", "--", 1) if flag.startswith("--") else flag
                   for flag in flags(port, nnodes, workers) + list(more)]
            return [*program, *own, "--no_python", programs.stamp_worker, act]
        return command

    found = {"muster": muster}
    if with_peer and programs.torch_new:
        found["torchrun 2.15"] = torchrun(programs.torchrun_new())
    if with_peer and programs.torch_old:
        found["torchrun 1.13"] = torchrun(programs.torchrun_old())
    return found


def run(programs, journal, plan, with_peer=True):
    found = node_commands(programs, with_peer)
    starts(programs, journal, plan, found)
    released(programs, journal, plan, found)
    restarts(programs, journal, plan, found["muster"])
    changes(journal, plan, found)
    crowds(programs, journal, plan)


def released(programs, journal, plan, found):
    """torchrun's rendezvous alone: all agents have imported torch when the clock starts."""
    name = "torchrun 1.13"
    if name not in found:
        return
    for agents in plan.agents:
        journal.say(f"nodes: {agents} agents of {name} that meet, their imports done")
        for repetition in range(plan.peer_repetitions):
            about = {"part": "meet", "launcher": f"{name}, imports done", "agents": agents}
            with contextlib.closing(Stamps()) as stamps:
                node = found[name](free_port(), str(agents), 1, "exit")
                began = stamps.start_together(node, agents)
                try:
                    last = stamps.wait(agents, PEER_PATIENCE_S)
                except tools.BenchError as error:
                    journal.fail(f"{name}, {agents} agents", str(error))
                    continue
                first = min(seconds for seconds, _ in stamps.seen)
                journal.samples.append(about | {"repetition": repetition, "first_ms": (first - began) * 1e3,
                                                "last_ms": (last - began) * 1e3})


def together(programs, agents, command):
    return [programs.dash, "-c", TOGETHER, "together", str(agents), *command]


def starts(programs, journal, plan, found):
    if not programs.dash:
        journal.fail("agents that start together", "there is no dash")
        return
    for agents in plan.agents:
        journal.say(f"nodes: {agents} agents that meet, their workers exit at once")
        for repetition in range(plan.repetitions):
            for name, command in found.items():
                if name != "muster" and repetition >= plan.peer_repetitions:
                    continue
                node = command(free_port(), str(agents), 1, "exit")
                measure = [programs.launch_bench, "start", "--workers", str(agents), "--"]
                journal.take({"part": "meet", "launcher": name, "agents": agents, "repetition": repetition},
                             measure + together(programs, agents, node))


def restarts(programs, journal, plan, muster):
    if not programs.dash:
        return
    journal.say("nodes: one of 2 x 2 workers killed")
    for repetition in range(plan.restarts):
        node = muster(free_port(), "2", 2, "stay", "--max-restarts", "1")
        measure = [programs.launch_bench, "restart", "--workers", "4", "--"]
        journal.take({"part": "restart across", "launcher": "muster", "repetition": repetition},
                     measure + together(programs, 2, node))


class Stamps:
    """What `stamp_worker`s say, by a pipe; and the nodes that were started, which end with this."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="muster-bench-")
        path = pathlib.Path(self._folder.name, "stamps")
        os.mkfifo(path)
        self._pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._environment = {**os.environ, "BENCH_STAMPS": str(path)}
        self._unread = b""
        self._output = pathlib.Path(self._folder.name, "output")
        self.seen = []  # Of (seconds, pid).
        self.nodes = []

    def start_together(self, command, count):
        """Starts so many that wait for each other once they have imported torch; returns when they were let go."""
        gate, ready = (pathlib.Path(self._folder.name, name) for name in ("gate", "ready"))
        self._environment |= {"BENCH_GATE": str(gate), "BENCH_OUT": str(ready)}
        ready.touch()
        for _ in range(count):
            self.start(command)
        deadline = time.monotonic() + PEER_PATIENCE_S
        while ready.read_text(encoding="utf-8").count("\n") < count:
            if time.monotonic() > deadline:
                raise tools.BenchError("torch was not imported in time")
            time.sleep(0.05)
        gate.touch()
        return time.monotonic()

    def start(self, command):
        """Returns the node, and when it was started."""
        began = time.monotonic()
        with open(self._output, "ab") as output:
            node = subprocess.Popen(command, env=self._environment, stdin=subprocess.DEVNULL, stdout=output,
                                    stderr=output)
        self.nodes.append(node)
        return node, began

    def wait(self, count, patience=PATIENCE_S):
        """Until so many workers have begun in all; returns when the last of them did."""
        deadline = time.monotonic() + patience
        while len(self.seen) < count:
            left = deadline - time.monotonic()
            if left <= 0 or all(node.poll() is not None for node in self.nodes):
                quote = self._output.read_text(errors="replace")[-2000:]
                raise tools.BenchError(f"{len(self.seen)} of {count} workers have begun"
                                       f"{'' if left <= 0 else ', and no launcher is left'}: {quote}")
            if select.select([self._pipe], [], [], min(left, 1))[0]:
                *lines, self._unread = (self._unread + os.read(self._pipe, 65536)).split(b"\n")
                self.seen += [(int(line.split()[0]) / 1e9, int(line.split()[1])) for line in lines]
        return max(began for began, _ in self.seen[:count])

    def children(self, pid):
        return [int(child) for child in
                pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def close(self):
        for node in self.nodes:
            if node.poll() is None:
                for pid in [node.pid, *self.children(node.pid)]:
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGCONT)
                node.terminate()
        for node in self.nodes:
            try:
                node.wait(3)
            except subprocess.TimeoutExpired:
                node.kill()
                node.wait()
        for _, pid in self.seen:  # torchrun leaves its workers behind when it is killed.
            with contextlib.suppress(OSError):
                if b"stamp_worker" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
        os.close(self._pipe)
        self._folder.cleanup()


def changes(journal, plan, found):
    journal.say("nodes: one of 2 is lost, one joins")
    for name, command in found.items():
        ours = name == "muster"
        if name == "torchrun 1.13":
            continue  # baselines are for the newest; the old one is no faster.
        for repetition in range(plan.changes if ours else plan.peer_changes):
            for way in ("killed", "silent", "joined") if ours else ("killed", "joined"):
                about = {"part": "change", "launcher": name, "way": way, "repetition": repetition}
                with contextlib.closing(Stamps()) as stamps:
                    try:
                        seconds = CHANGES[way](stamps, command, ours)
                        journal.samples.append(about | {"change_ms": seconds * 1e3})
                    except tools.BenchError as error:
                        if ours:
                            journal.fail(", ".join(map(str, about.values())), str(error))
                        else:
                            journal.samples.append(about | {"change_ms": None})


def _two(stamps, command, ours, lease):
    """A job of two nodes, one worker each, that may go on with one. Returns the second node."""
    port = free_port()
    more = ["--lease", f"{lease}s"] if ours else ["--max-restarts", "3"]
    node = command(port, "1:2", 1, "stay", *more)
    stamps.start(node)
    wait_for_listener(port)
    second, _ = stamps.start(node)
    stamps.wait(2, PEER_PATIENCE_S)
    time.sleep(0.3)
    return second


def wait_for_listener(port):
    """Who comes first hosts the rendezvous: the one that is not lost."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise tools.BenchError("the first agent serves no store")


def _killed(stamps, command, ours):
    """From SIGKILL of an agent to the survivor's worker in the smaller world."""
    second = _two(stamps, command, ours, 10)
    began = time.monotonic()
    if ours:
        os.kill(stamps.children(second.pid)[0], signal.SIGKILL)
    else:
        second.kill()
        for _, pid in stamps.seen:  # Its worker, and the other one, which notices the loss of its peer.
            os.kill(pid, signal.SIGKILL)
    return stamps.wait(3, PEER_PATIENCE_S) - began


def _silent(stamps, command, ours):
    """The same of a node that falls silent: all of it is stopped."""
    second = _two(stamps, command, ours, LEASE_S)
    (agent,) = stamps.children(second.pid)
    workers = stamps.children(agent)
    began = time.monotonic()
    for pid in (second.pid, agent, *workers):
        os.kill(pid, signal.SIGSTOP)
    return stamps.wait(3) - began


def _joined(stamps, command, ours):
    """From the start of an agent to the last worker of the larger world."""
    port = free_port()
    conf = ["--rdzv-conf", "last_call_timeout=1"]
    node = command(port, "1:2", 1, "stay", *conf)
    stamps.start(node)
    stamps.wait(1, PEER_PATIENCE_S)
    time.sleep(0.3)
    _, began = stamps.start(node)
    return stamps.wait(3, PEER_PATIENCE_S) - began


CHANGES = {"killed": _killed, "silent": _silent, "joined": _joined}


class Daemon(servers.Server):
    """musterd, which ends by a signal."""

    def __init__(self, programs, cpu):
        self._state = tempfile.TemporaryDirectory(prefix="muster-bench-")  # It knows that it is the first.
        super().__init__("musterd", [programs.musterd, "--listen", "127.0.0.1:0", "--state-folder", self._state.name,
                                     "--log-level", "warn"], cpu)

    def stop(self):
        self._process.terminate()
        super().stop()
        self._state.cleanup()


def crowds(programs, journal, plan):
    server_cpu, load_cpu = tools.two_cpus()
    for agents, repetitions in plan.crowds:
        journal.say(f"nodes: {agents:,} simulated agents")
        for repetition in range(repetitions):
            try:
                with Daemon(programs, server_cpu) as server:
                    journal.take({"part": "swarm", "agents": agents, "repetition": repetition},
                                 [programs.agents_load, "--address", server.address, "--server", str(server.pid),
                                  "--agents", str(agents), "--rest", str(plan.rest_s)], load_cpu)
            except tools.BenchError as error:
                journal.fail(f"{agents} simulated agents", str(error))
