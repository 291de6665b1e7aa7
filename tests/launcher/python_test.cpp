#include "launcher/python.hpp"

#include "tests/launcher/temporary_folder.hpp"

#include <string>

#include <catch2/catch.hpp>

namespace muster::launcher {
namespace {

namespace fs = std::filesystem;

const std::string kProgram =
    "\x7f"
    "ELF";

/// A virtual environment called `name`, its Python, and a muster in it.
std::string make_venv(const TemporaryFolder& folder, const std::string& name) {
  folder.write(name + "/pyvenv.cfg", "");
  folder.write_program(name + "/bin/muster", kProgram);
  return folder.write_program(name + "/bin/python", kProgram);
}

ChosenPython chosen(const std::string& invoked_as, const Environment& environment) {
  const auto python = choose_python(invoked_as, environment);
  REQUIRE(python);
  return *python;
}

}  // namespace

TEST_CASE("the Python is the first of those with a claim", "[launcher][python]") {
  const TemporaryFolder folder;
  const auto asked = folder.write_program("asked/python3.11", kProgram);
  const auto beside = make_venv(folder, "beside");
  const auto active = make_venv(folder, "active");
  const auto conda = folder.write_program("conda/bin/python", kProgram);
  const auto on_path = folder.write_program("path/python3", kProgram);
  const auto older = folder.write_program("path/python", kProgram);

  Environment environment{{"PYTHON_EXEC", asked},
                          {"VIRTUAL_ENV", folder.at("active")},
                          {"CONDA_PREFIX", folder.at("conda")},
                          {"PATH", folder.at("path")}};
  const auto muster = folder.at("beside/bin/muster");
  CHECK(chosen(muster, environment).path == asked);
  CHECK(chosen(muster, environment).why == "PYTHON_EXEC is set");
  environment.erase("PYTHON_EXEC");
  CHECK(chosen(muster, environment).path == beside);
  CHECK(chosen(muster, environment).why ==
        "beside muster in the virtual environment '" + folder.at("beside") + "'");
  CHECK(chosen("/opt/bin/muster", environment).path == active);
  CHECK(chosen("/opt/bin/muster", environment).why == "VIRTUAL_ENV is set");
  environment.erase("VIRTUAL_ENV");
  CHECK(chosen("/opt/bin/muster", environment).path == conda);
  CHECK(chosen("/opt/bin/muster", environment).why == "CONDA_PREFIX is set");
  environment["CONDA_PREFIX"] = "";
  CHECK(chosen("/opt/bin/muster", environment).path == on_path);
  CHECK(chosen("/opt/bin/muster", environment).why == "the first python3 on PATH");
  fs::remove(on_path);
  CHECK(chosen("/opt/bin/muster", environment).path == older);
}

TEST_CASE("muster's own folder counts by the path that it was called by", "[launcher][python]") {
  const TemporaryFolder folder;
  const auto python = make_venv(folder, "venv");
  folder.write_program("opt/muster", kProgram);
  folder.write("conda/conda-meta/history", "");
  const auto conda = folder.write_program("conda/bin/python3", kProgram);
  folder.write_program("path/python3", kProgram);
  const Environment environment{{"PATH", folder.at("venv/bin") + ":" + folder.at("path")}};

  SECTION("found on PATH where it has no slash") {
    CHECK(chosen("muster", environment).why.starts_with("beside muster"));
    CHECK(chosen("muster", environment).path == python);
  }
  SECTION("a link in an environment to a program outside is in the environment") {
    fs::create_symlink(folder.at("opt/muster"), folder.at("conda/bin/muster"));
    CHECK(chosen(folder.at("conda/bin/muster"), environment).path == conda);
    CHECK(chosen(folder.at("conda/bin/muster"), environment).why ==
          "beside muster in the conda environment '" + folder.at("conda") + "'");
  }
  SECTION("a link outside to a program in an environment is not") {
    fs::create_symlink(folder.at("venv/bin/muster"), folder.at("opt/link"));
    CHECK(chosen(folder.at("opt/link"), environment).why == "the first python3 on PATH");
  }
  SECTION("relative to the current folder") {
    const auto before = fs::current_path();
    fs::current_path(folder.at("venv/bin"));
    CHECK(chosen("./muster", environment).path == python);
    fs::current_path(before);
  }
}

TEST_CASE("an environment without a Python is passed over, and that is said",
          "[launcher][python]") {
  const TemporaryFolder folder;
  folder.write("stale/pyvenv.cfg", "");
  folder.write_program("path/python3", kProgram);
  folder.write("stale/bin/python", kProgram);  // Not executable.
  const Environment environment{{"PATH", folder.at("path")}, {"VIRTUAL_ENV", folder.at("stale")}};
  CHECK(chosen("/opt/bin/muster", environment).why ==
        "the first python3 on PATH; VIRTUAL_ENV='" + folder.at("stale") + "' has no bin/python");
  CHECK(chosen(folder.at("stale/bin/muster"), environment).path == folder.at("path/python3"));
}

TEST_CASE("a version manager's shim is told from a Python", "[launcher][python]") {
  const TemporaryFolder folder;
  folder.write_program("shims/python3", "#!/bin/sh\nexec real\n");
  CHECK(chosen("", {{"PATH", folder.at("shims")}}).why ==
        "the first python3 on PATH; it is a script, perhaps a version manager's shim");
}

TEST_CASE("PATH is searched as a shell does", "[launcher][python]") {
  const TemporaryFolder folder;
  folder.write("first/python3", kProgram);  // Not executable.
  fs::create_directories(folder.at("second/python3"));
  folder.write_program("a b/python3", kProgram);
  folder.write_program("python3", kProgram);
  const auto path = folder.at("first") + ":" + folder.at("second") + ":" + folder.at("gone") + ":";
  CHECK(chosen("", {{"PATH", path + folder.at("a b")}}).path == folder.at("a b/python3"));
  const auto before = fs::current_path();
  fs::current_path(folder.path());
  CHECK(chosen("", {{"PATH", path}}).path == "./python3");  // An empty folder is the current one.
  fs::current_path(before);
}

TEST_CASE("without any Python everything that was looked at is named", "[launcher][python]") {
  const TemporaryFolder folder;
  const auto none = choose_python(
      folder.at("bin/muster"), {{"PATH", folder.at("path")}, {"VIRTUAL_ENV", folder.at("venv")}});
  REQUIRE_FALSE(none);
  CHECK(none.error().message ==
        "no Python was found: PYTHON_EXEC is unset, '" + folder.at("bin") +
            "', where muster is, is in no environment, VIRTUAL_ENV='" + folder.at("venv") +
            "' has no bin/python, CONDA_PREFIX is unset, no python3 or python in PATH='" +
            folder.at("path") + "'; set PYTHON_EXEC to the Python that the workers need");
}

TEST_CASE("a PYTHON_EXEC that is none is refused, not passed over", "[launcher][python]") {
  const TemporaryFolder folder;
  folder.write_program("path/python3", kProgram);
  Environment environment{{"PATH", folder.at("path")}, {"PYTHON_EXEC", "/gone/python"}};
  CHECK(choose_python("", environment).error().message ==
        "PYTHON_EXEC: '/gone/python' is no program that can be executed");
  environment["PYTHON_EXEC"] = "python9";
  CHECK(choose_python("", environment).error().message ==
        "PYTHON_EXEC: 'python9' is no program that can be executed, nor is there one on PATH");
  environment["PYTHON_EXEC"] = "python3";
  CHECK(chosen("", environment).path == folder.at("path/python3"));
}

}  // namespace muster::launcher
