"""The servers under load, each in a process that ends when its standard input is closed."""

import re
import select
import subprocess
import time

from harness import tools

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 10
PEER = str(tools.REPOSITORY / "tests/bench/harness/peer_store.py")


class Server:
    """Starts a server and learns its port from the first line that it prints; a context manager."""

    def __init__(self, name, command, cpu=None):
        self.name = name
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         preexec_fn=tools.pinned_to(cpu))
        self.pid = self._process.pid
        try:
            self.address = f"127.0.0.1:{self._read_port()}"
        except BaseException:
            self.stop()
            raise

    def _read_port(self):
        line = b""
        deadline = time.monotonic() + START_TIMEOUT_S
        while not line.endswith(b"\n"):
            left = max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select([self._process.stdout], [], [], left)
            part = self._process.stdout.read1(256) if ready else b""
            if not part:
                raise tools.BenchError(f"the {self.name} server printed no port within "
                                       f"{START_TIMEOUT_S} s (it printed {line!r})")
            line += part
        return int(re.findall(rb"\d+", line)[-1])

    def stop(self):
        self._process.stdin.close()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def commands(programs, with_peer=True):
    """Name to command of every server that this machine can run. The first is ours."""
    found = {"muster": [programs.store_server], "floor": [programs.epoll_floor]}
    if with_peer and programs.torch_new:
        found["libuv"] = [programs.torch_new, PEER]
    return found
