"""Jobs of plain shell workers under muster, for the tests that need no PyTorch."""

import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time
import unittest
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MUSTER_BUILD", ROOT / "build/dev"))
# Built with sanitizers, which need descriptors and memory of their own.
SANITIZED = bool(re.search(r"^MUSTER_SANITIZE:\w+=(?!OFF$).+$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE))
MUSTER = BUILD / "launcher/muster"
STORE_SERVER = BUILD / "tests/tools/store_server"

MARK = "MUSTER_TEST_MARK"  # In the environment of all that a test starts, with a value of its own.
PATIENCE = 60  # Seconds for whatever should happen at once, on a machine that has much else to do.


# Where the tests run in the background these may be ignored, and muster leaves them so. A handler is not inherited.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, lambda *_: None)

needs_root = unittest.skipUnless(os.geteuid() == 0, "needs root, for namespaces and other users")


def processes_marked(mark):
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            environment = pathlib.Path(entry.path, "environ").read_bytes().split(b"\0")
            state = pathlib.Path(entry.path, "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if f"{MARK}={mark}".encode() in environment and state != "Z":
            found.append(int(entry.name))
    return found


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def children_of(pid):
    """None of a process that is gone."""
    try:
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def show_processes(mark):
    """A line for each: its number and its parent's, its state, where in the kernel it waits, its command line."""
    lines = []
    for pid in processes_marked(mark):
        folder = pathlib.Path(f"/proc/{pid}")
        try:
            state, parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[:2]
            command = (folder / "cmdline").read_text(errors="replace").replace("\0", " ")
            lines.append(f"  {pid} of {parent} {state} {(folder / 'wchan').read_text()} {command}")
        except OSError:
            continue
    return "\n".join(lines)


def read_terminal(terminal, until=None):
    """What a terminal shows until these bytes come, or to the end: its other side is closed."""
    deadline = time.monotonic() + PATIENCE
    shown = b""
    while until is None or until not in shown:
        if not select.select([terminal], [], [], max(0, deadline - time.monotonic()))[0]:
            raise AssertionError(f"waited {PATIENCE} s for {until or 'the end'}; the terminal shows {shown}")
        try:
            shown += os.read(terminal, 4096)
        except OSError:  # EIO: nobody has the other side open.
            break
    return shown


def wait_for(condition, what, patience=PATIENCE):
    """Polls for what gives no event to a test: a file, a process table. Returns what the condition returned."""
    deadline = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {patience} s for {what}")
        time.sleep(0.005)


class JobTest(unittest.TestCase):
    """A temporary folder, a mark, and the check that neither a process nor a temporary file is left."""

    surroundings = ()  # What muster is started through: as another user, as on an older kernel.
    patience = 2 * PATIENCE  # Seconds for a whole test: a wait with a deadline of its own says better what was late.

    def setUp(self):
        self.limit_time()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        self.mark = uuid.uuid4().hex
        self.addCleanup(self.check_nothing_left)
        dropped = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "OMP_NUM_THREADS", "LOGLEVEL")
        self.environment = {name: value for name, value in os.environ.items() if name not in dropped}
        self.environment.update({MARK: self.mark, "TMPDIR": str(self.temporary)})
        self.keeps_temporary = False
        self.locks = self.folder / "locks"
        self.locks.mkdir()
        for each in (self.folder, self.temporary, self.locks):  # Whoever the workers are.
            each.chmod(0o777)

    def limit_time(self):
        """A test that takes too long fails where it waits, whatever for; so does each step of its clean-up."""

        def late(*_):
            raise AssertionError(f"the test takes more than {self.patience} s")

        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, late))
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_REAL, self.patience, PATIENCE)

    # Each worker holds a lock on a file named after job and rank for its life; so does what it leaves behind.
    LOCKING = """
exec 9> "{locks}/${{TORCHELASTIC_RUN_ID##*/}}.$RANK"
flock -n 9 || {{ echo "a second holder of rank $RANK" >> "{locks}/violations"; exit 99; }}
"""

    def check_nothing_left(self):
        self.assertFalse((self.locks / "violations").exists(), "a rank had two holders")
        try:
            wait_for(lambda: not processes_marked(self.mark), "every process of the test to end", 5)
        except AssertionError as late:
            left = show_processes(self.mark)
            for pid in processes_marked(self.mark):
                kill(pid)
            raise AssertionError(f"{late}; these are left:\n{left}") from None
        if not self.keeps_temporary:
            self.assertEqual(list(self.temporary.iterdir()), [])

    def script(self, text, name="worker.sh", mode=0o755):
        path = self.folder / name
        first, _, rest = text.partition("\n")
        if first == "#!/bin/sh":
            text = first + self.LOCKING.format(locks=self.locks) + rest
        path.write_text(text)
        path.chmod(mode)
        return path

    def start(self, *arguments, wrap=(), **options):
        """muster in the background; its stderr and stdout are pipes unless given."""
        command = [*map(str, wrap), *map(str, self.surroundings), str(MUSTER), *map(str, arguments)]
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("env", self.environment)
        process = subprocess.Popen(command, text=True, errors="replace", cwd=self.folder, **options)
        self.addCleanup(self.end, process)
        return process

    def start_on_terminal(self, *arguments, **options):
        """muster in the foreground of a terminal of its own. Returns it, and what stands for screen and keyboard."""
        terminal, side = pty.openpty()
        self.addCleanup(os.close, terminal)
        try:
            job = self.start(*arguments, **options, stdin=side, stdout=side, stderr=side, start_new_session=True,
                             preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        finally:
            os.close(side)
        return job, terminal

    def end(self, process):
        if process.poll() is None:
            print(f"{self.id()} ends with a job that still runs:\n{show_processes(self.mark)}", file=sys.stderr)
            process.send_signal(signal.SIGKILL)
        for stream in (process.stdout, process.stderr, process.stdin):
            if stream:
                stream.close()
        process.wait()

    def run_job(self, *arguments, **options):
        """Runs a job to its end and returns (exit code, stdout, stderr)."""
        process = self.start(*arguments, **options)
        out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err

    def free_port(self):
        """One that nobody has now, on loopback."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            return server.getsockname()[1]

    def lines_of(self, name):
        path = self.folder / name
        return path.read_text().split("\n")[:-1] if path.exists() else []
