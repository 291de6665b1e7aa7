#!/usr/bin/python3
"""`./x setup` asks for what is missing and for nothing else, and says what to do where it may not
install. Package tools are played by scripts that write down how they were called."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEADLINE = 120  # Seconds.
TOOLS = (
    "bash",
    "awk",
    "grep",
    "env",
    "nproc",
    "dirname",
    "cat",
    "rm",
    "mkdir",
)  # What ./x itself runs.


class Setup(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muster-setup-")
        self.addCleanup(folder.cleanup)
        self.bin = pathlib.Path(folder.name)
        self.calls = self.bin / "calls"
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool, path="/usr/bin:/bin"))

    def play(self, name: str, script: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)

    def setup(
        self, missing: str, user: int, has_sudo: bool, purpose: str = "build"
    ) -> subprocess.CompletedProcess:
        """Runs `./x setup` on a machine that lacks one package."""
        self.play("dpkg-query", f'[[ ${{!#}} != "{missing}" ]] && echo -n installed')
        self.play("apt-get", f'echo "apt-get $*" >>{self.calls}')
        self.play("id", f"echo {user}")
        if has_sudo:
            self.play("sudo", f'echo -n "sudo " >>{self.calls}; exec "$@"')
        return subprocess.run(
            [ROOT / "x", "setup", purpose],
            env={"PATH": str(self.bin)},
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )

    def called(self) -> list[str]:
        return self.calls.read_text().splitlines() if self.calls.exists() else []

    def test_nothing_is_called_where_nothing_is_missing(self):
        result = self.setup(missing="none", user=0, has_sudo=True)
        self.assertEqual((result.returncode, self.called()), (0, []), result)

    def test_only_the_missing_package_is_installed(self):
        result = self.setup(missing="mold", user=0, has_sudo=False)
        self.assertEqual(result.returncode, 0, result)
        update, install = self.called()
        self.assertRegex(update, r"^apt-get .* update$")
        self.assertRegex(install, r"^apt-get .* install -y --no-install-recommends mold$")

    def test_another_user_goes_through_sudo(self):
        result = self.setup(missing="mold", user=1000, has_sudo=True)
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual([call.split()[:2] for call in self.called()], [["sudo", "apt-get"]] * 2)

    def test_without_sudo_it_says_what_to_install(self):
        result = self.setup(missing="mold", user=1000, has_sudo=False)
        self.assertEqual((result.returncode, self.called()), (1, []), result)
        self.assertIn("apt-get install --no-install-recommends mold", result.stderr)

    def test_a_build_needs_less_than_a_test(self):
        self.assertEqual(
            self.setup(missing="python3-torch", user=0, has_sudo=False, purpose="build").returncode,
            0,
        )
        self.assertEqual(self.called(), [])
        self.setup(missing="python3-torch", user=0, has_sudo=False, purpose="test")
        self.assertRegex(self.called()[-1], "python3-torch$")


class TorchEnvironment(unittest.TestCase):
    def test_a_failed_installation_leaves_nothing_that_counts(self):
        with tempfile.TemporaryDirectory(prefix="muster-cache-") as cache:
            environment = dict(
                os.environ, XDG_CACHE_HOME=cache, PIP_NO_INDEX="1", PIP_FIND_LINKS=""
            )
            result = subprocess.run(
                [ROOT / "tests/tools/torch_env.sh"],
                env=environment,
                capture_output=True,
                text=True,
                timeout=DEADLINE,
            )
            self.assertNotEqual(result.returncode, 0)
            self.assertIn("torch==", result.stderr)
            left = [path.name for path in (pathlib.Path(cache) / "muster").iterdir()]
            self.assertEqual([name for name in left if not name.endswith(".lock")], [])


if __name__ == "__main__":
    unittest.main()
