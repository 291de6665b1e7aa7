#!/usr/bin/python3
"""`./x` does nothing by mistake: help is only help, and what it can not do it says, with the way
out."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEADLINE = 60  # Seconds.
TOOLS = ("bash", "dirname", "nproc", "cat", "git", "grep", "xargs", "rm", "mkdir")


class Commands(unittest.TestCase):
    def setUp(self):
        """A copy of the script alone, so that nothing here is built or run by mistake."""
        folder = tempfile.TemporaryDirectory(prefix="muster-commands-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        shutil.copy(ROOT / "x", self.folder / "x")
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool, path="/usr/bin:/bin"))

    def x(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [self.folder / "x", *arguments],
            env={"PATH": str(self.bin)},
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )

    def refusal(self, *arguments: str) -> str:
        result = self.x(*arguments)
        self.assertEqual((result.returncode, result.stdout), (1, ""), result)
        self.assertFalse((self.folder / "build/results").exists())
        return result.stderr

    def test_help_is_only_help_wherever_it_stands(self):
        for arguments in ([], ["help"], ["-h"], ["demo", "--help"], ["test", "-h"], ["fmt", "-h"]):
            with self.subTest(arguments):
                result = self.x(*arguments)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertTrue(result.stdout.startswith("Usage: ./x COMMAND"), result.stdout)
                self.assertFalse((self.folder / "build").exists())

    def test_an_argument_too_many_starts_nothing(self):
        for command in ("demo", "test"):
            self.assertEqual(
                self.refusal(command, "quick"),
                f"x: {command} takes no argument, but 'quick' was given\n",
            )

    def test_a_missing_tool_is_named_with_the_way_to_it(self):
        for command, tool in (("fmt", "clang-format-19"), ("tidy", "clang-tidy-19")):
            self.assertEqual(
                self.refusal(command), f"x: {tool} is missing: run './x setup test' first\n"
            )

    def test_tidy_wants_a_build_to_judge_by(self):
        (self.bin / "clang-tidy-19").symlink_to(shutil.which("false"))
        self.assertIn("run './x build dev' first", self.refusal("tidy"))


if __name__ == "__main__":
    unittest.main()
