"""Where the programs are, and how one of them is run for one sample."""

import json
import os
import pathlib
import shutil
import subprocess
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
HAS_TORCH = "import importlib.util as u; raise SystemExit(u.find_spec('torch') is None)"
TOOL_TIMEOUT_S = 150  # Above every deadline of the tools themselves, so that theirs speaks first.


class BenchError(Exception):
    """A run that cannot be trusted, or could not be made; its text is for people."""


class Programs:
    """What is measured and what measures, of one build folder. Peers that are not here are None."""

    def __init__(self, build):
        build = pathlib.Path(build).resolve()
        self.build = build
        self.store_load = self._built(build / "tests/bench/store_load")
        self.epoll_floor = self._built(build / "tests/bench/epoll_floor")
        self.launch_bench = self._built(build / "tests/bench/launch_bench")
        self.agents_load = self._built(build / "tests/bench/agents_load")
        self.musterd = self._built(build / "rendezvous/daemon/musterd")
        self.stamp_worker = self._built(build / "tests/bench/stamp_worker")
        self.store_server = self._built(build / "tests/tools/store_server")
        self.muster = self._built(build / "launcher/muster")
        self.dash = shutil.which("dash")
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        new = os.environ.get("MUSTER_TORCH_NEW") or f"{cache}/muster/torch-2.15.0/bin/python"
        old = os.environ.get("MUSTER_TORCH_OLD") or "/usr/bin/python3"
        self.torch_new = self._with_torch(new)
        self.torch_old = self._with_torch(old)

    @staticmethod
    def _built(path):
        if not os.access(path, os.X_OK):
            raise BenchError(f"{path} is not there: build it first (./x build release)")
        return str(path)

    @staticmethod
    def _with_torch(python):
        if not os.access(python, os.X_OK):
            return None
        found = subprocess.run(
            [python, "-c", HAS_TORCH],
            check=False, timeout=TOOL_TIMEOUT_S, stderr=subprocess.DEVNULL)
        return python if found.returncode == 0 else None

    def torchrun_new(self):
        """The newest PyTorch's own entry point, by the Python that has it."""
        return [self.torch_new, "-m", "torch.distributed.run"]

    def torchrun_old(self):
        """Debian's 1.13, mended; its default interval of 5 s would only measure a sleep."""
        program = str(REPOSITORY / "tests/tools/torchrun113.py")
        return [self.torch_old, program, "--monitor_interval", "0.1"]


def figures(command, cpu=None):
    """Runs a tool, on one CPU if told so, and returns the JSON object that it prints."""
    shown = " ".join(map(str, command))
    try:
        run = subprocess.run(command, check=False, capture_output=True, text=True,
                             timeout=TOOL_TIMEOUT_S, stdin=subprocess.DEVNULL,
                             preexec_fn=pinned_to(cpu))
    except subprocess.TimeoutExpired:
        raise BenchError(f"{shown}: did not end within {TOOL_TIMEOUT_S} s") from None
    if run.returncode != 0:
        raise BenchError(f"{shown}: exit code {run.returncode}: {run.stderr.strip()}")
    return json.loads(run.stdout)


def pinned_to(cpu):
    return None if cpu is None else lambda: os.sched_setaffinity(0, {cpu})


def two_cpus():
    """One for the server, one for the load; None, None where there are not two."""
    allowed = sorted(os.sched_getaffinity(0))
    return (allowed[-1], allowed[0]) if len(allowed) > 1 else (None, None)


class Journal:
    """All samples of a run, the failures among them, and a line of progress for each stage."""

    def __init__(self):
        self.samples = []
        self.failures = []
        self._began = time.monotonic()

    def take(self, about, command, cpu=None):
        """One sample: `about` says of what. A failed one is kept as a failure; the run goes on."""
        try:
            self.samples.append(about | figures(command, cpu))
        except BenchError as error:
            self.fail(", ".join(f"{key} {value}" for key, value in about.items()), str(error))

    def fail(self, what, why):
        """What failed is kept for the page; why is for whoever looks at the run."""
        self.failures.append(what)
        print(f"  FAILED {what}: {why}", flush=True)

    def say(self, text):
        print(f"[{time.monotonic() - self._began:6.1f} s] {text}", flush=True)
