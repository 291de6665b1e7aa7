#!/usr/bin/python3
"""A program of somebody else's brings the store client in as docs/reference/store_client.md says, and
builds nothing of us but what that needs."""

import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEADLINE = 280  # Seconds: below ctest's own.
PROGRAM = """
#include "rendezvous/store_client/store_client.hpp"
#include <cstdio>

int main() {
  using namespace std::chrono_literals;
  const auto client = muster::store_client::StoreClient::connect(
      {"127.0.0.1", 1}, {.timeout = 5s, .wait_for_server = false});
  std::puts(client ? "connected" : client.error().message.c_str());
}
"""


def run(*command: str | pathlib.Path) -> str:
    result = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=DEADLINE
    )
    if result.returncode != 0:
        raise AssertionError(f"{command} exited {result.returncode}:\n{result.stdout}")
    return result.stdout


class Consumer(unittest.TestCase):
    def test_a_program_is_built_as_the_page_says(self):
        page = (ROOT / "docs/reference/store_client.md").read_text()
        (lines,) = re.findall(r"^```cmake\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
        with tempfile.TemporaryDirectory(prefix="muster-consumer-") as name:
            folder = pathlib.Path(name)
            (folder / "muster").symlink_to(ROOT)
            (folder / "meet.cpp").write_text(PROGRAM)
            (folder / "CMakeLists.txt").write_text(
                f"cmake_minimum_required(VERSION 3.25)\nproject(meet LANGUAGES CXX)\n{lines}"
            )
            build = folder / "build"
            run("cmake", "-G", "Ninja", "-S", folder, "-B", build)
            run("ninja", "-C", build, "-j", "2")
            self.assertIn("connect to 127.0.0.1:1: ", run(build / "meet"))
            libraries = {path.name for path in build.rglob("*.a")}
            self.assertEqual(
                libraries, {"libmuster_base.a", "libmuster_posix.a", "libmuster_store_client.a"}
            )


if __name__ == "__main__":
    unittest.main()
