#!/usr/bin/env python3
"""interop_test.py PROGRAM: runs the C++ interop program against stores that real PyTorch processes host.

MUSTER_TORCH_OLD and MUSTER_TORCH_NEW name the Python interpreters. One that cannot import torch is skipped, and fails
the test if CI=true.
"""

import os
import pathlib
import select
import subprocess
import sys

SKIPPED = 77
START_SECONDS = 120
PROGRAM_SECONDS = 240

# Hosts the store, publishes the port, and plays the Python part of the first case of interop.cpp.
HOST = r"""
import datetime, sys, torch.distributed as dist
backend = sys.argv[1]
options = {} if backend == "only" else {"use_libuv": backend == "libuv"}
store = dist.TCPStore("127.0.0.1", 0, 1, True, datetime.timedelta(seconds=60), wait_for_workers=False, **options)
store.set("from python", b"\0py\xff")
print(store.port, flush=True)
store.wait(["go on"])
assert store.get("from c++") == b"\0c++\xff", store.get("from c++")
assert dist.PrefixStore("view", store).get("key") == b"seen"
store.set("python agrees", str(store.add("counter", 2)))
sys.stdin.read()
assert store.add("counter", 0) == 42
print("bye", flush=True)
"""

CASES = [  # Which interpreter, the server's backend, its dialect, whether it has queues.
    ("MUSTER_TORCH_OLD", "/usr/bin/python3", "only", "A", False),
    ("MUSTER_TORCH_NEW", "~/.cache/muster/torch-2.15.0/bin/python", "libuv", "G", True),
    ("MUSTER_TORCH_NEW", "~/.cache/muster/torch-2.15.0/bin/python", "poll", "G", False),
]


def torch_version(python):
    """None if that interpreter is not there or has no torch."""
    try:
        asked = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    except OSError:
        return None
    return asked.stdout.strip() if asked.returncode == 0 else None


def read_line(process, seconds):
    ready, _, _ = select.select([process.stdout], [], [], seconds)
    return process.stdout.readline().strip() if ready else ""


def run_case(program, python, backend, dialect, has_queues):
    """Whether the program and the Python host both succeeded."""
    host = subprocess.Popen([python, "-c", HOST, backend], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        port = read_line(host, START_SECONDS)
        if not port:
            print(f"the store's host {python} did not start", file=sys.stderr)
            return False
        variables = {
            "MUSTER_TEST_STORE": f"127.0.0.1:{port}",
            "MUSTER_TEST_DIALECT": dialect,
            "MUSTER_TEST_QUEUES": "1" if has_queues else "0",
        }
        code = subprocess.run([program], env=os.environ | variables, timeout=PROGRAM_SECONDS).returncode
        host.stdin.close()
        said = read_line(host, START_SECONDS)
        return code == 0 and said == "bye" and host.wait(START_SECONDS) == 0
    finally:
        host.kill()
        host.wait()


def main():
    program = sys.argv[1]
    failed = skipped = 0
    for variable, default, backend, dialect, has_queues in CASES:
        python = os.environ.get(variable) or str(pathlib.Path(default).expanduser())
        version = torch_version(python)
        if version is None:
            skipped += 1
            print(f"skipped: {python} cannot import torch (another one: {variable})", file=sys.stderr)
            continue
        good = run_case(program, python, backend, dialect, has_queues)
        failed += not good
        print(f"{'passed' if good else 'FAILED'}: PyTorch {version}, server {backend}, dialect {dialect}")
    if skipped and os.environ.get("CI") == "true":
        print("a PyTorch is missing, and CI=true allows no skips", file=sys.stderr)
        failed += skipped
    if failed:
        return 1
    return SKIPPED if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
