#!/usr/bin/python3
"""tests/tools/sanitized.sh loses no report: of a grandchild, with its stderr closed, whose failure
nobody looks at."""

import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SANITIZED = ROOT / "tests/tools/sanitized.sh"
REPORT_EXIT_CODE = 99  # As in sanitized.sh.
DEADLINE = 60  # Seconds, for a program that takes milliseconds.

FAULTS = {
    "address": ("heap-use-after-free", "int main() { int* p = new int(1); delete p; return *p; }"),
    "undefined": (
        "signed integer overflow",
        "int main(int n, char**) { int x = 2147483647; return (x += n) == 0; }",
    ),
    "thread": (
        "data race",
        "#include <thread>\nint x; int main() { std::thread t([] { ++x; }); ++x; t.join(); }",
    ),
    "leak": ("detected memory leaks", "int main() { volatile int* p = new int(1); p = nullptr; }"),
}
CLEAN = "int main() {}"


class Sanitized(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muster-sanitized-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_hidden(self, source: str, sanitizer: str) -> subprocess.CompletedProcess:
        """Runs the program as a grandchild whose output and exit code go nowhere."""
        program = self.folder / "program"
        flag = "address" if sanitizer == "leak" else sanitizer
        subprocess.run(
            [
                "g++",
                "-g1",
                f"-fsanitize={flag}",
                "-fno-sanitize-recover=all",
                "-x",
                "c++",
                "-",
                "-o",
                program,
            ],
            input=source,
            text=True,
            check=True,
            timeout=DEADLINE,
        )
        swallow = 'sh -c "$0 >/dev/null 2>&1; true"; exit 0'
        return subprocess.run(
            [SANITIZED, self.folder / "reports", "sh", "-c", swallow, program],
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )

    def test_a_hidden_report_fails_the_run_and_is_shown(self):
        for sanitizer, (words, source) in FAULTS.items():
            with self.subTest(sanitizer):
                result = self.run_hidden(source, sanitizer)
                self.assertEqual(result.returncode, REPORT_EXIT_CODE, result)
                self.assertIn(words, result.stdout)

    def test_a_clean_program_passes(self):
        result = self.run_hidden(CLEAN, "address")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_the_exit_code_of_the_command_is_kept(self):
        result = subprocess.run(
            [SANITIZED, self.folder / "reports", "sh", "-c", "exit 7"], timeout=DEADLINE
        )
        self.assertEqual(result.returncode, 7)


if __name__ == "__main__":
    unittest.main()
