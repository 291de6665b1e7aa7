"""Starting, stopping, memory kills and orphans where the machine gives less: an older kernel, other cgroups, no root."""

import os
import pathlib
import unittest

from bad_input_test import Limits
from job import BUILD
from launcher_test import Restarts, Signals
from stopping_test import Orphans, WhoIsAsked


def mounted(kind):
    return [line.split()[1] for line in pathlib.Path("/proc/mounts").read_text().splitlines() if line.split()[2] == kind]


def in_mounts(commands):
    """Runs what follows in a mount namespace of its own, changed by these commands."""
    return ("unshare", "--mount", "sh", "-ec", "; ".join([*commands, 'exec "$@"']), "sh")


SURROUNDINGS = {
    "OldKernel": (str(BUILD / "tests/tools/old_kernel"),),
    "CgroupV1Only": in_mounts([f"umount {point}" for point in mounted("cgroup2")]),
    "NoWritableCgroup": in_mounts([f"mount -o remount,bind,ro {point}" for point in mounted("cgroup") + mounted("cgroup2")]),
    "NoRoot": ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
}
def case(base, name, surroundings):
    """The tests of a class of another file, all through these surroundings."""
    return type(base.__name__ + name, (base,), {"surroundings": surroundings, "__module__": __name__})


def load_tests(loader, _tests, _pattern):
    suite = unittest.TestSuite()
    if os.geteuid() != 0:
        return suite
    for name, surroundings in SURROUNDINGS.items():
        if name == "CgroupV1Only" and not mounted("cgroup"):
            continue  # A machine of v2 alone.
        for base in (Restarts, Signals, WhoIsAsked, Orphans):
            suite.addTests(loader.loadTestsFromTestCase(case(base, name, surroundings)))
        memory = case(Limits, name, surroundings)
        suite.addTests(memory(test) for test in ("test_an_out_of_memory_kill_is_told_from_any_other",
                                                 "test_a_kill_by_hand_is_no_out_of_memory_kill_whatever_else_died_in_the_cgroup"))
    return suite


if __name__ == "__main__":
    unittest.main()
