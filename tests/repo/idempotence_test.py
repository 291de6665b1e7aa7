#!/usr/bin/python3
"""A second `./x` installs nothing and rebuilds nothing: dpkg's files and the virtual environment
stay as they are, and ninja sees no work in any build that `./x` has made."""

import hashlib
import os
import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRESETS = {"dev": "all", "tsan": "all", "release": "all", "fuzz": "tests/fuzz/all"}
INSTALLED = (
    "/var/lib/dpkg/status",
    "/var/log/dpkg.log",
    "/var/log/apt/history.log",
    "/var/lib/apt/lists",
)
DEADLINE = 280  # Seconds: below ctest's own.


def run(*command: str | pathlib.Path) -> str:
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE)
    if result.returncode != 0:
        raise AssertionError(
            f"{command} exited {result.returncode}:\n{result.stdout}{result.stderr}"
        )
    return result.stdout


def installed() -> dict[str, str]:
    """What shows that a package was installed, or the lists of packages loaded."""
    state = {}
    for name in map(pathlib.Path, INSTALLED):
        if name.is_file():
            state[str(name)] = hashlib.sha256(name.read_bytes()).hexdigest()
        elif name.is_dir():
            state[str(name)] = str(
                sorted((entry.name, entry.stat().st_mtime_ns) for entry in name.iterdir())
            )
    return state


def programs(build: pathlib.Path) -> dict[str, int]:
    """Every file that building makes, and when it was made."""
    files = (
        path for path in build.rglob("*") if path.suffix in (".o", ".a") or os.access(path, os.X_OK)
    )
    return {str(path): path.stat().st_mtime_ns for path in files if path.is_file()}


class SecondRun(unittest.TestCase):
    def test_nothing_is_installed(self):
        before = installed()
        self.assertIn("/var/lib/dpkg/status", before)
        self.assertIn("All packages for 'test' are installed.", run("./x", "setup", "test"))
        self.assertEqual(installed(), before)

    def test_the_virtual_environment_is_left_alone(self):
        place = pathlib.Path(run("tests/tools/torch_env.sh", "--where").strip())
        if not place.is_dir() and os.environ.get("CI") != "true":
            self.skipTest(f"{place} could not be made")
        before = (place.stat().st_ino, place.stat().st_mtime_ns)
        self.assertEqual(run("tests/tools/torch_env.sh").strip(), str(place))
        self.assertEqual((place.stat().st_ino, place.stat().st_mtime_ns), before)

    def test_nothing_is_rebuilt(self):
        built = [preset for preset in PRESETS if (ROOT / "build" / preset / "build.ninja").exists()]
        self.assertIn("release", built)
        for preset in built:
            target = PRESETS[preset]
            with self.subTest(preset):
                build = ROOT / "build" / preset
                # First without doing it: a build that is behind its sources would take long.
                self.assertIn("ninja: no work to do.", run("ninja", "-C", build, "-n", target))
                before = programs(build)
                self.assertTrue(before)
                self.assertIn("ninja: no work to do.", run("./x", "build", preset))
                self.assertEqual(programs(build), before)


if __name__ == "__main__":
    unittest.main()
