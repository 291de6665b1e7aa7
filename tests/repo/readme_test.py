#!/usr/bin/python3
"""What README.md tells the reader to type works: its `sh` blocks after a line `<!-- tested -->` are
run, in order, from the top of a checkout, and print what the `text` block after them shows. There,
`...` stands for anything."""

import pathlib
import re
import subprocess
import tempfile
import unittest
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEADLINE = 280  # Seconds for one block: below ctest's own.

BLOCK = re.compile(
    r"^<!-- tested -->\n```sh\n(?P<commands>.*?)^```\n"
    r"(?:\n?(?:[^\n`]+\n)*\n?```text\n(?P<output>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)


class Example(NamedTuple):
    commands: str
    output: str | None


def examples(text: str) -> list[Example]:
    return [Example(match["commands"], match["output"]) for match in BLOCK.finditer(text)]


def pattern(shown: str) -> re.Pattern:
    """Matches anywhere in what was printed; spaces at the ends of lines do not count."""
    lines = [
        ".*".join(map(re.escape, line.strip().split("..."))) for line in shown.strip().splitlines()
    ]
    return re.compile(r"\s*?\n\s*?".join(lines), re.DOTALL)


def run(commands: str, home: str) -> subprocess.CompletedProcess:
    """As a new user would: an empty home folder, Debian's programs."""
    environment = {"HOME": home, "PATH": "/usr/sbin:/sbin:/usr/bin:/bin", "LANG": "C.UTF-8"}
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE,
    )


class Readme(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muster-readme-")
        self.addCleanup(folder.cleanup)
        self.home = folder.name

    def test_its_commands_do_what_it_shows(self):
        found = examples((ROOT / "README.md").read_text())
        self.assertGreaterEqual(len(found), 3)
        for example in found:
            with self.subTest(example.commands):
                result = run(example.commands, self.home)
                self.assertEqual(result.returncode, 0, result.stdout)
                if example.output is not None:
                    self.assertRegex(result.stdout, pattern(example.output))

    def test_a_wrong_example_is_noticed(self):
        text = (
            "<!-- tested -->\n```sh\necho one two three\n```\n\nwhich prints\n\n```text\n{}\n```\n"
        )
        for shown, right in (("one ... three", True), ("one ... four", False)):
            (example,) = examples(text.format(shown))
            self.assertEqual(
                bool(pattern(example.output).search(run(example.commands, self.home).stdout)), right
            )
        self.assertNotEqual(run("false | true", self.home).returncode, 0)

    def test_its_links_lead_somewhere(self):
        text = (ROOT / "README.md").read_text()
        links = [
            link.split("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link
        ]
        self.assertTrue(links)
        self.assertEqual([link for link in links if link and not (ROOT / link).exists()], [])


if __name__ == "__main__":
    unittest.main()
