#!/usr/bin/python3
"""A release installs programs that need nothing but libc. MUSTER_BUILD names the build folder."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["MUSTER_BUILD"])
ALLOWED = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
DEADLINE = 60  # Seconds.


def dynamic_section(program: pathlib.Path) -> str:
    return subprocess.run(
        ["readelf", "--wide", "--dynamic", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE,
    ).stdout


def needed(program: pathlib.Path) -> set[str]:
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic_section(program)))


class OneFile(unittest.TestCase):
    def test_programs_need_only_libc(self):
        for name in ("launcher/muster", "launcher/ctl/musterctl", "rendezvous/daemon/musterd"):
            with self.subTest(name):
                program = BUILD / name
                self.assertIn("libc.so.6", needed(program))
                self.assertLessEqual(needed(program), ALLOWED)
                self.assertNotRegex(dynamic_section(program), r"\((RPATH|RUNPATH)\)")

    def test_the_check_sees_a_shared_library(self):
        self.assertIn("libstdc++.so.6", needed(BUILD / "tests/base/base_test") - ALLOWED)

    def test_the_installed_programs_stand_alone(self):
        with tempfile.TemporaryDirectory(prefix="muster-install-") as folder:
            prefix = pathlib.Path(folder)
            subprocess.run(
                ["cmake", "--install", BUILD, "--prefix", prefix, "--strip"],
                check=True,
                stdout=subprocess.DEVNULL,
                timeout=DEADLINE,
            )
            files = [
                path.relative_to(prefix).as_posix() for path in prefix.rglob("*") if path.is_file()
            ]
            self.assertEqual(sorted(files), ["bin/muster", "bin/musterctl", "bin/musterd"])
            for name in files:
                with self.subTest(name):
                    result = subprocess.run(
                        [prefix / name, "--version"],
                        capture_output=True,
                        text=True,
                        env={},
                        timeout=DEADLINE,
                    )
                    self.assertEqual(result.returncode, 0, result.stderr)
                    self.assertRegex(result.stdout, r"\d+\.\d+\.\d+")


if __name__ == "__main__":
    unittest.main()
