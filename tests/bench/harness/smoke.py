"""Does the harness work? Sane figures, a page from them, and a verification that can fail."""

import os
import pathlib
import socketserver
import subprocess
import tempfile
import threading

from harness import report

EXPECTED_PARTS = {"load", "crowd", "start", "restart", "memory", "print", "print of 8", "meet",
                  "restart across", "change", "swarm"}
EXPECTED_TITLES = ("Budgets", "Launch", "The launcher's own cost", "Restart", "Output",
                   "Many nodes: the start", "Many nodes: one is lost, one joins",
                   "Many nodes: thousands of agents",
                   "Store, a few connections", "Store, very many connections")

ORDERS = (("p50_us", "p99_us"), ("first_ms", "last_ms"), ("last_ms", "wall_ms"),
          ("resident_kib", "peak_kib"), ("pss_kib", "peak_kib"),
          ("first_stop_ms", "last_stop_ms"), ("last_stop_ms", "smaller_ms"),
          ("agent_received_bytes", "most_received_bytes"))
# In a short run a server may do all its work within one tick of the kernel's accounts.
MAY_BE_ZERO = {"repetition", "server_us_per_op", "open_server_ms", "wake_server_ms",
               "server_growth_kib", "exit_code", "cpu_s", "kib_per_agent", "rest_cpu_share",
               "join_server_ms"}


def run(document, programs):
    problems = list(document["failures"])
    expected = EXPECTED_PARTS | ({"steps"} if programs.torch_new or programs.torch_old else set())
    problems += _sanity(document["samples"], expected)
    problems += _verification_can_fail(programs)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        report.save(folder, document)
        report.write(folder, report.load(folder))
        page = (folder / "benchmarks.md").read_text(encoding="utf-8")
    problems += [f"the page has no part '{title}'" for title in EXPECTED_TITLES
                 if f"## {title}\n" not in page]
    for problem in problems:
        print(f"bench-smoke: {problem}")
    print(f"bench-smoke: {len(document['samples'])} samples, {len(problems)} problems")
    return 1 if problems else 0


def _sanity(samples, expected):
    for part in expected - {sample["part"] for sample in samples}:
        yield f"no sample of part '{part}'"
    for sample in samples:
        for key, value in sample.items():
            numbers = value if isinstance(value, list) else [value]
            bad = [one for one in numbers if not isinstance(one, str) and one <= 0]
            if bad and key not in MAY_BE_ZERO:
                yield f"{key} is {value} in {sample}"
        for smaller, larger in ORDERS:
            if smaller in sample and larger in sample and sample[smaller] > sample[larger]:
                yield f"{smaller} above {larger} in {sample}"


class _Liar(socketserver.BaseRequestHandler):
    """Echoes the PING that a greeting ends with, and answers whatever else comes with 7."""

    def handle(self):
        greeting = self.request.recv(4096)
        self.request.sendall(greeting[-4:])
        while self.request.recv(4096):
            self.request.sendall((7).to_bytes(8, "little"))


def _verification_can_fail(programs):
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Liar) as liar:
        liar.daemon_threads = True
        thread = threading.Thread(target=liar.serve_forever)
        thread.start()
        address = f"127.0.0.1:{liar.server_address[1]}"
        for mode, reason in (("run", "reply 0 for key"), ("crowd", "two ADDs got one answer")):
            operation = ["--operation", "add"] if mode == "run" else []
            load = subprocess.run(
                [programs.store_load, mode, *operation, "--address", address,
                 "--server", str(os.getpid()), "--connections", "3"],
                check=False, capture_output=True, text=True, timeout=60)
            if load.returncode == 0 or reason not in load.stderr:
                yield f"store_load {mode} took wrong answers: {load.stdout}{load.stderr}"
        liar.shutdown()
        thread.join()
