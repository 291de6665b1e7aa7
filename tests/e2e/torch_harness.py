"""What the tests with real PyTorch share: programs, Pythons, jobs, and that no process is left.

Two versions of PyTorch are tested: the one of Debian's python3-torch and the newest. Where one is
missing its tests are skipped, except with CI=true: there that is a failure.
"""

import functools
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time
import unittest
import uuid
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = pathlib.Path(__file__).resolve().with_name("scripts")
BUILD = pathlib.Path(os.environ.get("MUSTER_BUILD", ROOT / "build/dev"))
MUSTER = BUILD / "launcher/muster"
STORE_SERVER = BUILD / "tests/tools/store_server"
TORCHRUN113 = ROOT / "tests/tools/torchrun113.py"

MARK = "MUSTER_TEST_MARK"  # In the environment of all that a test starts, with a value of its own.
JOB_SECONDS = 120  # For one job: it takes some 10 s, more where torch comes from a slow disk.
GONE_SECONDS = 1  # For processes to be gone after their launcher.


class Client(NamedTuple):
    """A PyTorch that is there."""

    python: str
    version: str

    @property
    def is_new(self):
        return int(self.version.split(".")[0]) >= 2


CANDIDATES = {
    "old": os.environ.get("MUSTER_TORCH_OLD", "/usr/bin/python3"),
    "new": os.environ.get(
        "MUSTER_TORCH_NEW", str(pathlib.Path.home() / ".cache/muster/torch-2.15.0/bin/python")
    ),
}


@functools.cache
def version_of(python):
    """The version of a Python's PyTorch, or None. Debian's 1.13.1 calls itself 1.13.0a0."""
    question = "import importlib.metadata as m; print(m.version('torch'))"
    try:
        answer = subprocess.run([python, "-c", question], capture_output=True, text=True)
    except OSError:
        return None
    return answer.stdout.strip().split("+")[0] if answer.returncode == 0 else None


def client(age):
    """The `old` or the `new` PyTorch. Skips the test where it is missing; with CI=true it fails."""
    python = CANDIDATES[age]
    version = version_of(python)
    if version is None:
        variable = f"MUSTER_TORCH_{age.upper()}"
        missing = f"{python} has no PyTorch: install it with ./x test, or set {variable}"
        if os.environ.get("CI") == "true":
            raise AssertionError(missing)
        raise unittest.SkipTest(missing)
    return Client(python, version)


def marked_processes(mark):
    """The environment of each living process that a test started, by pid."""
    found = {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            pairs = pathlib.Path(entry.path, "environ").read_bytes().split(b"\0")
        except OSError:  # It ended meanwhile, or belongs to someone else.
            continue
        texts = [pair.decode(errors="replace") for pair in pairs if b"=" in pair]
        environment = dict(text.split("=", 1) for text in texts)
        if environment.get(MARK) == mark:
            found[int(entry.name)] = environment
    return found


def workers(mark, rank):
    """The processes of a test that have a rank."""
    processes = marked_processes(mark)
    return [pid for pid, environment in processes.items() if environment.get("RANK") == str(rank)]


class Finished(NamedTuple):
    code: int
    out: str
    err: str
    seconds: float

    def lines(self, beginning):
        """The rest of each line of stdout that begins so."""
        lines = self.out.splitlines()
        return [line[len(beginning) :] for line in lines if line.startswith(beginning)]


class Job:
    """A launcher with its workers, in the background: read line by line, killed when it is late."""

    def __init__(self, test, command, environment):
        self.command = [str(part) for part in command]
        self.mark = environment[MARK]
        self.began = time.monotonic()
        self.err_file = tempfile.TemporaryFile(mode="w+")
        test.addCleanup(self.err_file.close)
        self.process = subprocess.Popen(
            self.command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.err_file,
            text=True,
        )
        test.addCleanup(self.process.stdout.close)
        test.addCleanup(self.end)
        self.watchdog = threading.Timer(JOB_SECONDS, self.end)
        self.watchdog.start()
        self.seen = []

    def until(self, text):
        """Reads stdout up to the line that contains `text`, and returns it."""
        for line in self.process.stdout:
            self.seen.append(line)
            if text in line:
                return line
        raise AssertionError(f"{self.command} never printed {text!r}:\n{self.told()}")

    def finish(self):
        self.seen.extend(self.process.stdout)
        code = self.process.wait()
        self.watchdog.cancel()
        self.err_file.seek(0)
        seconds = time.monotonic() - self.began
        return Finished(code, "".join(self.seen), self.err_file.read(), seconds)

    def end(self):
        """Kills what is left of the job: for tests that failed, and jobs that are late."""
        self.watchdog.cancel()
        if self.process.poll() is None:
            for pid in marked_processes(self.mark):
                kill(pid)
            self.process.wait()

    def told(self):
        self.err_file.seek(0)
        return "".join(self.seen) + self.err_file.read()

    def kill_worker(self, rank):
        pids = workers(self.mark, rank)
        if len(pids) != 1:
            raise AssertionError(f"expected one process of rank {rank}, found {pids}")
        kill(pids[0])


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class TorchTest(unittest.TestCase):
    """A test with a folder of its own, whose processes are marked and must be gone at its end."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muster-e2e-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.mark = uuid.uuid4().hex
        self.addCleanup(self.check_nothing_is_left)

    def environment(self, **more):
        return {**os.environ, MARK: self.mark, **more}

    def start(self, command, **environment):
        return Job(self, command, self.environment(**environment))

    def run_job(self, command, **environment):
        """Runs a job that must succeed."""
        finished = self.start(command, **environment).finish()
        self.assertEqual(finished.code, 0, f"{command}\n{finished.out}{finished.err}")
        return finished

    def muster(self, client, *arguments, **environment):
        """Runs a job under muster, with the client's Python, that must succeed."""
        return self.run_job([MUSTER, *arguments], PYTHON_EXEC=client.python, **environment)

    def check_nothing_is_left(self):
        deadline = time.monotonic() + GONE_SECONDS
        while (left := marked_processes(self.mark)) and time.monotonic() < deadline:
            time.sleep(0.02)  # Processes that are no children of ours can only be looked for.
        for pid in left:
            kill(pid)
        ranks = {pid: environment.get("RANK") for pid, environment in left.items()}
        self.assertEqual(ranks, {}, "processes are left (pid: rank)")
