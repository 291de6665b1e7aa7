"""Does the harness work? Sane figures from a short run, a page from them, and a verification that can fail."""

import pathlib
import subprocess
import tempfile

from harness import report, servers

EXPECTED_PARTS = {"load", "crowd", "start", "restart", "memory", "print"}


def run(document, programs):
    problems = list(document["failures"])
    problems += _sanity(document["samples"])
    problems += _verification_can_fail(programs)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        report.save(folder, document)
        report.write(folder, report.load(folder))
        page = (folder / "benchmarks.md").read_text(encoding="utf-8")
    for title in ("Budgets", "Launch", "Restart", "Output", "Store, a few connections", "Store, very many"):
        if f"## {title}" not in page:
            problems.append(f"the page has no part '{title}'")
    for problem in problems:
        print(f"bench-smoke: {problem}")
    print(f"bench-smoke: {len(document['samples'])} samples, {len(problems)} problems")
    return 1 if problems else 0


def _sanity(samples):
    for part in EXPECTED_PARTS - {sample["part"] for sample in samples}:
        yield f"no sample of part '{part}'"
    orders = (("p50_us", "p99_us"), ("first_ms", "last_ms"), ("last_ms", "wall_ms"),
              ("resident_kib", "peak_kib"), ("pss_kib", "peak_kib"))
    # In a short run a server may do all its work within one tick of the kernel's accounts.
    may_be_zero = {"repetition", "value_bytes", "server_us_per_op", "open_server_ms", "server_growth_kib",
                   "exit_code", "cpu_s"}
    for sample in samples:
        for key, value in sample.items():
            if isinstance(value, (int, float)) and key not in may_be_zero and not value > 0:
                yield f"{key} is {value} in {sample}"
            if isinstance(value, list) and key != "wake_server_ms" and not all(one > 0 for one in value):
                yield f"{key} is {value} in {sample}"
        for smaller, larger in orders:
            if smaller in sample and larger in sample and sample[smaller] > sample[larger]:
                yield f"{smaller} above {larger} in {sample}"


def _verification_can_fail(programs):
    """A floor sends zeros: taken for a store, its first replies must be refused."""
    with servers.Server("floor", [programs.epoll_floor]) as floor:
        for command in (["run", "--operation", "ping"], ["crowd", "--connections", "3"]):
            load = subprocess.run(
                [programs.store_load, *command, "--address", floor.address, "--server", str(floor.pid)],
                check=False, capture_output=True, text=True, timeout=60)
            if load.returncode == 0:
                yield f"store_load {command[0]} took zeros for a store's replies"
