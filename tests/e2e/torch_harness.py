"""What the tests with real PyTorch share: programs, Pythons, jobs, and that no process is left.

Two versions of PyTorch are tested: the one of Debian's python3-torch and the newest. Where one is
missing its tests are skipped, except with CI=true: there that is a failure.
"""

import functools
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
from typing import NamedTuple

from job import BUILD, MARK, MUSTER, ROOT, JobTest, kill, processes_marked, show_processes

SCRIPTS = pathlib.Path(__file__).resolve().with_name("scripts")
TORCHRUN113 = ROOT / "tests/tools/torchrun113.py"
NATIVE_MEET = BUILD / "examples/native/native_meet"

JOB_SECONDS = 240  # For one job: it takes 10 s or 20, more where torch comes from a slow disk.


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


class Finished(NamedTuple):
    code: int
    out: str
    err: str

    def lines(self, beginning):
        """The rest of each line of stdout that begins so."""
        lines = self.out.splitlines()
        return [line[len(beginning) :] for line in lines if line.startswith(beginning)]


class Job:
    """A launcher with its workers, in the background: read line by line, killed when it is late."""

    def __init__(self, test, command, environment):
        self.command = [str(part) for part in command]
        self.mark = environment[MARK]
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

    def finish(self):
        out = self.process.stdout.read()
        code = self.process.wait()
        self.watchdog.cancel()
        self.err_file.seek(0)
        return Finished(code, out, self.err_file.read())

    def end(self):
        """Kills what is left of the job: for tests that failed, and jobs that are late."""
        self.watchdog.cancel()
        if self.process.poll() is None:
            print(f"this job still runs:\n{show_processes(self.mark)}", file=sys.stderr)
            for pid in processes_marked(self.mark):
                kill(pid)
            self.process.wait()


class TorchTest(JobTest):
    """A test with a folder of its own, whose processes are marked and must be gone at its end."""

    patience = 2 * JOB_SECONDS

    def launch(self, command, **environment):
        """Starts a job; more variables for its environment by name."""
        return Job(self, command, {**self.environment, **environment})

    def finish(self, job):
        """Waits for the end of a job that must succeed."""
        finished = job.finish()
        self.assertEqual(finished.code, 0, f"{job.command}\n{finished.out}{finished.err}")
        return finished

    def muster(self, client, *arguments):
        """Starts a job under muster with the client's Python."""
        return self.launch([MUSTER, *arguments], PYTHON_EXEC=client.python)

    def torchrun(self, client, *arguments):
        """Starts a job under the client's own torchrun, on a free port."""
        self.keeps_temporary = True  # It leaves a folder for logs behind.
        own = ["-m", "torch.distributed.run"] if client.is_new else [TORCHRUN113]
        meet = ["--rdzv_backend=c10d", "--rdzv_endpoint=localhost:0"]
        return self.launch([client.python, *own, *meet, *arguments])
