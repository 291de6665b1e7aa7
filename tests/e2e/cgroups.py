"""Cgroups that a test makes for itself."""

import contextlib
import os
import pathlib
import unittest

from job import wait_for

LIMITS = {  # Files of v1 and of v2; the last ones, for swap, where the kernel has them.
    "pids": (["pids.max"], ["pids.max"]),
    "memory": (["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"], ["memory.max", "memory.swap.max"]),
}


@contextlib.contextmanager
def cgroup(controller, limit):
    """A cgroup of this test's own, v1 or v2; the processes are moved in by `sh -c 'echo $$ > ...'`."""
    root = pathlib.Path("/sys/fs/cgroup")
    v1, v2 = LIMITS[controller]
    try:
        if (root / controller / "cgroup.procs").exists():
            root, (first, *more) = root / controller, v1
        else:
            first, *more = v2
            (root / "cgroup.subtree_control").write_text(f"+{controller}")
        folder = root / f"muster-test-{os.getpid()}"
        folder.mkdir()
    except OSError as error:
        raise unittest.SkipTest(f"no cgroup hierarchy of {controller} that we may write to: {error}") from None
    try:
        (folder / first).write_text(str(limit))
        for file in more:
            with contextlib.suppress(OSError):
                (folder / file).write_text(str(limit) if root.name == controller else "0")
        yield folder
    finally:
        wait_for(lambda: not (folder / "cgroup.procs").read_text(), "the cgroup to be empty")
        folder.rmdir()


def inside(folder):
    return ("sh", "-c", f'echo $$ > {folder}/cgroup.procs; exec "$@"', "sh")
