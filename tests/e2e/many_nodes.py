"""Jobs on several hosts: nodes in the background, servers, and what the workers tell of their rounds."""

import os
import re
import signal
import subprocess
import time
from typing import NamedTuple

from cluster import Cluster
from job import BUILD, MUSTER, PATIENCE, JobTest, children_of, processes_marked, show_processes, wait_for

MEMBER = BUILD / "tests/e2e/member"
MUSTERD = BUILD / "rendezvous/daemon/musterd"
MUSTERCTL = BUILD / "launcher/ctl/musterctl"
PORT = 29400
LONG = os.environ.get("MUSTER_LONG") == "1"  # With the repetitions, and the cases, that take too long for every day.
LEASE = 2.0  # Seconds; short, so that what waits for its end does not take long.


class Line(NamedTuple):
    """What a worker said: an event, and who it is."""

    event: str
    facts: dict

    def __getattr__(self, name):
        value = self.facts[name]
        return int(value) if value.isdigit() else value

    @property
    def seconds(self):
        """On the clock of time.monotonic()."""
        return int(self.facts["at"]) / 1e9


def line_of(text):
    event, *pairs = text.split(" ")
    return Line(event, dict(pair.split("=", 1) for pair in pairs))


class Meeting(NamedTuple):
    """A round whose workers have all met at its store: their lines by rank."""

    lines: list

    def hosts(self):
        return [line.host for line in self.lines]

    def pids(self):
        return [line.pid for line in self.lines]

    def seconds(self):
        return max(line.seconds for line in self.lines)


class Program:
    """A program on a host, in the background. Its output is kept in a file."""

    def __init__(self, test, host, command, environment, name):
        self.test = test
        self.host = host
        self.name = name
        self.file = test.folder / name
        with open(self.file, "w", encoding="utf-8") as output:
            self.process = subprocess.Popen([*test.cluster.on(host), *map(str, command)], cwd=test.folder,
                                            env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        test.addCleanup(self.end)

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        return self.file.read_text(errors="replace")

    def says(self, pattern, patience=PATIENCE):
        """Waits until its output has this; returns the match."""
        try:
            return wait_for(lambda: re.search(pattern, self.log()), pattern, patience)
        except AssertionError as late:
            raise AssertionError(f"{late}; {self.name} says:\n{self.log()}") from None

    def ended(self, patience=PATIENCE):
        """Waits for its end; returns the exit code, -N for signal N."""
        try:
            return self.process.wait(patience)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} has not ended after {patience} s; it says:\n{self.log()}\n"
                                 f"{show_processes(self.test.mark)}") from None

    def runs(self):
        return self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        if self.runs():
            self.process.kill()
        self.process.wait()


class Node(Program):
    """A launcher. Its process is the keeper, and that one's child is the agent."""

    def agent(self):
        return wait_for(lambda: children_of(self.pid), "the keeper to have a child")[0]


class ManyNodes(JobTest):
    """A cluster, and jobs of `member` workers on it."""

    hosts = 2
    patience = 150

    def setUp(self):
        self.cluster = Cluster(self, self.hosts)  # First, so that it goes last.
        super().setUp()
        self.orders = self.folder / "orders"
        self.orders.mkdir()
        self.programs = []
        self.seen = {}  # By job: so many lines of the log belong to meetings that were waited for.
        self.endpoint = f"{self.cluster.address(0)}:{PORT}"

    # --- Programs. ---

    def environment_of(self, host, more=()):
        runtime = self.folder / f"runtime{host}"  # Of that host's user: where a server leaves its token.
        runtime.mkdir(mode=0o700, exist_ok=True)
        return {**self.environment, "XDG_RUNTIME_DIR": str(runtime), **dict(more)}

    def launch(self, kind, host, command, **environment):
        name = f"{kind.__name__.lower()}{len(self.programs)}-on-h{host}"
        program = kind(self, host, command, self.environment_of(host, environment), name)
        self.programs.append(program)
        return program

    def node(self, host, *flags, nnodes="2", nproc=1, job="job", lease=LEASE, endpoint=None, command=None,
             wrap=(), **environment):
        """Starts a node of a job."""
        command = command or [MEMBER, self.folder]
        meet = ["--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint or self.endpoint, "--rdzv-id", job]
        given = [MUSTER, "--nnodes", nnodes, "--nproc-per-node", nproc, "--lease", f"{lease * 1000:.0f}ms", *meet, *flags, *command]
        return self.launch(Node, host, [*wrap, *given], **environment)

    def musterd(self, host=0, *flags, longest="20s"):
        """Starts a standing server on a host, and waits until it serves. Recovery lasts 1.25 times the longest lease."""
        listen = f"{self.cluster.address(host)}:{PORT}"
        state = self.folder / f"musterd-h{host}"
        server = self.launch(Program, host, [MUSTERD, "--listen", listen, "--state-folder", state, "--max-lease", longest,
                                             *flags])
        self.wait_until_served(host)
        return server

    def wait_until_served(self, host):
        wait_for(lambda: f":{PORT} " in self.cluster.run(host, "ss", "-Hltn", f"sport = {PORT}"),
                 f"a server on port {PORT} of h{host}")

    def musterctl(self, host, *arguments):
        """Runs it to its end, on the server's host: it finds endpoint and token by itself."""
        return subprocess.run([*self.cluster.on(host), str(MUSTERCTL), *map(str, arguments)], cwd=self.folder,
                              env=self.environment_of(host), capture_output=True, text=True, timeout=PATIENCE,
                              check=False)

    # --- What the workers do. ---

    def lines(self, job="job"):
        log = self.folder / "log"
        text = log.read_text() if log.exists() else ""
        lines = [line_of(line) for line in text.split("\n")[:-1]]
        return [line for line in lines if line.job == job]

    def meets(self, world, patience=PATIENCE, job="job"):
        """Waits for a round of that size, later than those that were waited for before, whose workers have all met."""
        found = []

        def complete():
            lines = self.lines(job)
            rounds = {}
            for number, line in enumerate(lines):
                if line.event == "met" and line.world == world and number >= self.seen.get(job, 0):
                    rounds.setdefault(line.round, []).append(line)
                    if len(rounds[line.round]) == world:
                        self.seen[job] = number + 1
                        found.append(Meeting(sorted(rounds[line.round], key=lambda met: met.rank)))
                        return True
            return False

        def found_or_over():
            nodes = [program for program in self.programs if isinstance(program, Node)]
            return complete() or (nodes and not any(node.runs() for node in nodes))

        try:
            wait_for(found_or_over, f"a round of {world} workers", patience)
            if not found and not complete():
                raise AssertionError(f"a round of {world} workers: every node has ended")
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.all_logs()}") from None
        meeting = found[0]
        self.assertEqual([line.rank for line in meeting.lines], list(range(world)))
        return meeting

    def all_logs(self):
        """For people, when something did not happen."""
        log = self.folder / "log"
        texts = [f"--- {program.name} ({program.process.poll()}):\n{program.log()}" for program in self.programs]
        texts.append(f"--- workers:\n{log.read_text() if log.exists() else ''}")
        return "\n".join(texts)

    def undisturbed(self, meeting, job="job"):
        """No worker of that round noticed anything: all still run, and none began since."""
        for line in meeting.lines:
            self.assertTrue(os.path.exists(f"/proc/{line.pid}"), f"rank {line.rank} is gone\n{self.all_logs()}")
        later = [line for line in self.lines(job)[self.seen[job]:] if line.event != "met"]
        self.assertEqual(later, [], self.all_logs())

    def tell(self, rank, code, job="job"):
        """Ends one worker with that exit code."""
        partial = self.folder / "order"
        partial.write_text(str(code))
        partial.rename(self.orders / f"{job}.{rank}")

    def tell_all(self):
        """Ends every worker, of now and of later, with 0."""
        (self.orders / "end").touch()

    def all_end(self, *nodes, code=0, patience=PATIENCE):
        began = time.monotonic()
        codes = [node.ended(patience) for node in nodes]
        self.assertEqual(codes, [code] * len(nodes), self.all_logs())
        return time.monotonic() - began

    def finish(self, *nodes, patience=PATIENCE):
        """Lets a job that is well end well."""
        self.tell_all()
        return self.all_end(*nodes, patience=patience)

    def wait_gone(self, pids, patience=PATIENCE):
        """Until none of them runs; a parent that is stopped may not have reaped it."""
        wait_for(lambda: not set(pids) & set(processes_marked(self.mark)), f"{pids} to end", patience)

    @staticmethod
    def kill(pid, number=signal.SIGKILL):
        os.kill(pid, number)
