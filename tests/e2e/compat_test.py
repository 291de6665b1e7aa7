#!/usr/bin/python3
"""What scripts written for torchrun do besides the usual, under muster.

The scripts write each line at once, by sys.stdout.write: several workers share one output.
"""

import unittest

from job import MUSTER
from torch_harness import NATIVE_MEET, SCRIPTS, TorchTest, client

TWO = "--nproc-per-node=2"


class Compat(TorchTest):
    def run_script(self, age, name, *arguments, flags=(TWO,)):
        """Runs a script under muster; returns its lines, in order of their text."""
        job = self.muster(client(age), *flags, SCRIPTS / name, *arguments)
        return sorted(self.finish(job).out.splitlines())

    def for_each_pytorch(self, name, expected, *arguments, flags=(TWO,)):
        for age in ("old", "new"):
            with self.subTest(age):
                self.assertEqual(self.run_script(age, name, *arguments, flags=flags), expected)


class MeetingPoint(Compat):
    SUMS = ["rank 0 sum 3", "rank 1 sum 3"]

    def test_as_a_tcp_address_is_the_launchers_store(self):
        self.for_each_pytorch("meet_by_address.py", self.SUMS)

    def test_on_another_port_is_rank_0s_own_store(self):
        # The newest PyTorch only: 1.13 takes every address for the launcher's store.
        lines = self.run_script("new", "meet_by_address.py", self.free_port())
        self.assertEqual(lines, self.SUMS)

    def test_can_be_made_by_rank_0(self):
        self.for_each_pytorch("meet_by_address.py", self.SUMS, flags=(TWO, "--worker-store=torch"))

    def test_serves_two_groups_of_the_same_processes(self):
        expected = [f"group 1 rank {rank} sum 3" for rank in (0, 1)]
        expected += [f"group 2 rank {rank} sum 5" for rank in (0, 1)]
        self.for_each_pytorch("meet_twice.py", expected)


class Habits(Compat):
    def test_local_rank_on_the_command_line(self):
        # As the launcher of each version spelt it.
        spellings = {
            "old": ("--pass-local-rank", "--local_rank"),
            "new": ("--pass-local-rank=dash", "--local-rank"),
        }
        for age, (flag, argument) in spellings.items():
            with self.subTest(age):
                lines = self.run_script(age, "legacy.py", "--name", "job", flags=[TWO, flag])
                expected = [f"{argument}={rank} --name job, sum 3" for rank in (0, 1)]
                self.assertEqual(lines, expected)

    def test_rank_0_prepares_while_the_others_wait(self):
        for age in ("old", "new"):
            with self.subTest(age):
                folder = self.folder / age
                folder.mkdir()
                flags = ["--nproc-per-node=3"]
                lines = self.run_script(age, "first_prepares.py", folder, flags=flags)
                found = [f"rank {rank} found it prepared" for rank in range(3)]
                self.assertEqual(lines, ["prepared by rank 0", *found])


class Jobs(Compat):
    def test_rank_that_comes_late_after_a_restart(self):
        for age in ("old", "new"):
            with self.subTest(age):
                folder = self.folder / age
                folder.mkdir()
                flags = [TWO, "--max-restarts=1"]
                lines = self.run_script(age, "late_after_restart.py", folder, flags=flags)
                self.assertEqual(lines, [f"rank {rank} attempt 1 sum 3" for rank in (0, 1)])

    def test_two_at_once_with_default_flags(self):
        met = [self.folder / "one has met", self.folder / "two has met"]
        jobs = []
        for number, age in enumerate(("old", "new")):
            files = [met[number], met[1 - number]]
            script = [SCRIPTS / "beside_another.py", *files, 10 + number]
            jobs.append(self.muster(client(age), TWO, *script))
        for number, job in enumerate(jobs):
            lines = sorted(self.finish(job).out.splitlines())
            total = 2 * (10 + number)
            self.assertEqual(lines, [f"rank {rank} of 2 sum {total}" for rank in (0, 1)])

    def test_of_native_workers(self):
        job = self.launch([MUSTER, "--nproc-per-node=4", NATIVE_MEET])
        lines = sorted(self.finish(job).out.splitlines())
        self.assertEqual(len(lines), 4, lines)
        for rank, line in enumerate(lines):
            self.assertRegex(line, rf"^rank {rank} of 4: met all the others as \S+, sum 10$")


if __name__ == "__main__":
    unittest.main()
