#include "launcher/program.hpp"

#include "base/posix/file.hpp"
#include "tests/launcher/temporary_folder.hpp"

#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <catch2/catch.hpp>

namespace muster::launcher {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

/// A folder that is also the current one, with a Python on PATH.
class Workplace : public TemporaryFolder {
 public:
  Workplace() : before_(fs::current_path()) {
    python = write_program("bin/python3",
                           "\x7f"
                           "ELF" +
                               std::string(4, '\0'));
    sh = write_program("bin/sh",
                       "\x7f"
                       "ELF" +
                           std::string(4, '\0'));
    write_program("bin/env",
                  "\x7f"
                  "ELF" +
                      std::string(4, '\0'));
    environment["PATH"] = at("bin");
    fs::current_path(path());
  }
  ~Workplace() { fs::current_path(before_); }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  [[nodiscard]] Result<Program> resolve(const std::string& script,
                                        ProgramKind kind = ProgramKind::Script) const {
    Options options;
    options.script = script;
    options.program_kind = kind;
    return resolve_program(options, environment);
  }
  /// argv up to the script, or the error.
  [[nodiscard]] Words prefix(const std::string& script,
                             ProgramKind kind = ProgramKind::Script) const {
    const auto program = resolve(script, kind);
    if (!program) return {program.error().message};
    CHECK_FALSE(program->why.empty());
    CHECK(program->path.find('/') != std::string::npos);
    return program->prefix;
  }
  [[nodiscard]] std::string error(const std::string& script,
                                  ProgramKind kind = ProgramKind::Script) const {
    const auto program = resolve(script, kind);
    return program ? "(accepted)" : program.error().message;
  }

  std::string python;
  std::string sh;
  Environment environment;

 private:
  fs::path before_;
};

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

/// What a child writes to its stdout.
std::string output_of(const WorkerCommand& command) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], 1);
    ::close(ends[0]);
    ::close(ends[1]);
    std::vector<char*> argv;
    argv.reserve(command.argv.size() + 1);
    for (const auto& word : command.argv) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    ::execv(command.path.c_str(), argv.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string output;
  char buffer[4096];
  while (true) {
    const ssize_t count = ::read(ends[0], buffer, sizeof buffer);
    if (count <= 0) break;
    output.append(buffer, static_cast<std::size_t>(count));
  }
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  return output;
}

}  // namespace

TEST_CASE("a name that ends in .py runs with Python, whatever its mode", "[launcher][program]") {
  const Workplace here;
  here.write("train.py", "");
  here.write_program("tool.py", "#!/bin/bash\n");
  CHECK(here.prefix("train.py") == Words{here.python, "-u", "train.py"});
  CHECK(here.prefix("./tool.py") == Words{here.python, "-u", "./tool.py"});
  const auto program = here.resolve("train.py");
  CHECK(program->path == here.python);
  CHECK(program->why == "its name ends in .py");
  REQUIRE(program->python);
  CHECK(program->python->why == "the first python3 on PATH");
}

TEST_CASE("a #! line that names Python makes a Python script, whatever its mode",
          "[launcher][program]") {
  const Workplace here;
  for (const std::string line :
       {"#!/usr/bin/python3", "#!/nowhere/python3.11 -O", "#! /usr/bin/env python",
        "#!/usr/bin/env python3\r", "#!/usr/bin/env -S python3 -u", "#!/usr/bin/env -S A=b python3",
        "#!/usr/bin/env -Spython3"}) {
    INFO(line);
    here.write("train", line + "\nprint(1)\n");
    CHECK(here.prefix("train") == Words{here.python, "-u", "train"});
    here.write_program("train", line + "\nprint(1)\n");
    CHECK(here.prefix("train") == Words{here.python, "-u", "train"});
  }
  for (const std::string line : {"#!/bin/sh python3", "#!python", "#!/usr/bin/pythonista"}) {
    INFO(line);
    here.write("train", line + "\n");
    CHECK((here.prefix("train") == Words{here.python, "-u", "train"}) == (line == "#!python"));
  }
}

TEST_CASE("an executable file runs as it is", "[launcher][program]") {
  const Workplace here;
  here.write_program("binary",
                     "\x7f"
                     "ELF" +
                         std::string(60, '\0'));
  here.write_program("w.sh", "#!" + here.sh + "\n");
  here.write_program("env.sh", "#!" + here.at("bin/env") + " sh\n");
  CHECK(here.prefix("./binary") == Words{"./binary"});
  CHECK(here.prefix("binary") == Words{"./binary"});
  CHECK(here.prefix(here.at("w.sh")) == Words{here.at("w.sh")});
  CHECK(here.prefix("./env.sh") == Words{"./env.sh"});
  CHECK_FALSE(here.resolve("./binary")->python);
}

TEST_CASE("a bare word that is no file here is a program on PATH", "[launcher][program]") {
  const Workplace here;
  CHECK(here.prefix("python3") == Words{"python3"});
  CHECK(here.resolve("python3")->path == here.python);
  here.write("python3", "no program");  // Neither marked as Python nor executable.
  CHECK(here.resolve("python3")->path == here.python);
  here.write_program("python3",
                     "\x7f"
                     "ELF");
  CHECK(here.resolve("python3")->path == "./python3");
}

TEST_CASE("a folder does not hide a program on PATH", "[launcher][program]") {
  const Workplace here;
  fs::create_directory("python3");
  CHECK(here.resolve("python3")->path == here.python);
}

TEST_CASE("a script on PATH keeps the Python that its #! line names", "[launcher][program]") {
  const Workplace here;
  const auto other = here.write_program("other/python3",
                                        "\x7f"
                                        "ELF");
  const auto tool = here.write_program("bin/tool", "#!" + other + "\n");
  CHECK(here.prefix("tool") == Words{other, "-u", tool});
  CHECK(here.resolve("tool")->python->path == other);
  here.write_program("bin/tool", "#!/usr/bin/env python3\n");
  CHECK(here.prefix("tool") == Words{here.python, "-u", tool});
  here.write_program("bin/tool", "#!/gone/python3\n");
  has(here.error("tool"), "has a #! line that names '/gone/python3', which is no program");
}

TEST_CASE("a folder with a __main__.py runs with Python", "[launcher][program]") {
  const Workplace here;
  here.write("app/__main__.py", "");
  CHECK(here.prefix("app") == Words{here.python, "-u", "app"});
}

TEST_CASE("what can not be run is refused with the reason", "[launcher][program]") {
  const Workplace here;
  fs::create_directory("folder");
  fs::create_symlink("gone", "link");
  REQUIRE(::mkfifo("pipe", 0644) == 0);
  here.write("w.sh", "#!/bin/sh\necho\n");
  here.write("notes", "some text\n");
  here.write("program", std::string("\x7f"
                                    "ELF\0\0",
                                    6));
  here.write_program("text", "echo hello\n");
  here.write_program("empty", "");
  here.write_program("marked", "\xEF\xBB\xBF#!/bin/sh\n");
  here.write_program("windows.sh", "#!" + here.sh + "\r\necho\r\n");
  here.write_program("stale", "#!/gone/interpreter -x\n");
  here.write_program("lost", "#!" + here.at("bin/env") + " ruby\n");

  has(here.error("train.py"),
      "no file 'train.py' in " + std::string("'") + here.path().string() + "'");
  CHECK(here.error("train.py").find("PATH") == std::string::npos);
  has(here.error("train"), "and no program of that name in PATH='" + here.at("bin") + "'");
  has(here.error("/gone/train.py"), "no file '/gone/train.py'");
  has(here.error("notes/train.py"), "'notes/train.py': Not a directory");
  has(here.error(std::string(5000, 'x') + ".py"), "File name too long");
  has(here.error("folder"), "'folder' is a folder without a __main__.py");
  has(here.error("link"), "'link' is a symbolic link to 'gone', which does not exist");
  has(here.error("pipe"), "'pipe' is no file but a pipe, socket or device");
  has(here.error("w.sh"),
      "'w.sh' is a script for '/bin/sh', but not executable: make it executable");
  has(here.error("notes"), "nothing says that it is Python: name it .py or begin it with");
  has(here.error("program"), "'program' is a program, but not executable");
  has(here.error("text"), "'text' is executable, but text without a #! line");
  has(here.error("empty"), "'empty' is empty");
  has(here.error("marked"), "'marked' has a byte order mark before its #! line");
  has(here.error("windows.sh"), "'windows.sh' has Windows line ends");
  has(here.error("stale"), "'stale' has a #! line that names '/gone/interpreter'");
  has(here.error("lost"), "'lost' asks for 'ruby' in its #! line, which is not in PATH=");
  has(here.error("python"), "muster finds Python by itself");
  has(here.error(""), "the script's name is empty");
}

TEST_CASE("with --no-python the program is what execvp finds", "[launcher][program]") {
  const Workplace here;
  here.write_program("train",
                     "\x7f"
                     "ELF");
  here.write_program("train.py", "#!" + here.python + "\n");
  CHECK(here.prefix("python3", ProgramKind::NoPython) == Words{"python3"});
  CHECK(here.resolve("python3", ProgramKind::NoPython)->path == here.python);
  CHECK(here.prefix("./train", ProgramKind::NoPython) == Words{"./train"});
  CHECK(here.prefix("./train.py", ProgramKind::NoPython) == Words{"./train.py"});
  has(here.error("train", ProgramKind::NoPython), "no program 'train' in PATH=");
  has(here.error("train", ProgramKind::NoPython), "the file in the current folder is ./train");
  has(here.error("./gone", ProgramKind::NoPython), "no file './gone'");
  has(here.error("./bin", ProgramKind::NoPython), "'./bin' is a folder");
}

TEST_CASE("a module and a path run with Python", "[launcher][program]") {
  const Workplace here;
  here.write("train", "");
  CHECK(here.prefix("pkg.mod", ProgramKind::Module) == Words{here.python, "-u", "-m", "pkg.mod"});
  const auto run_path = here.prefix("train", ProgramKind::RunPath);
  REQUIRE(run_path.size() == 5);
  CHECK(run_path[2] == "-c");
  CHECK(run_path[4] == "train");
  has(here.error("gone.py", ProgramKind::RunPath), "no file 'gone.py'");
}

TEST_CASE("a name that begins with a dash is no flag of Python", "[launcher][program]") {
  const Workplace here;
  here.write("-c.py", "");
  CHECK(here.prefix("-c.py") == Words{here.python, "-u", "./-c.py"});
}

TEST_CASE("names may have blanks, quotes, line ends and any bytes in them", "[launcher][program]") {
  const Workplace here;
  for (const std::string name :
       {"a b.py", "it's \"x\".py", "two\nlines.py", "\xff\xfe.py", "$HOME.py", "#!.py"}) {
    here.write(name, "");
    CHECK(here.prefix(name) == Words{here.python, "-u", name});
  }
  has(here.error("gone\n.py"), "no file 'gone\\x0a.py'");
}

TEST_CASE("runpy's script sees its own name and arguments", "[launcher][program][python]") {
  const Workplace here;
  here.write("show it.py", "import sys\nprint(__name__, sys.argv)\n");
  Options options;
  options.script = "show it.py";
  options.program_kind = ProgramKind::RunPath;
  options.script_args = {"-x", "", "${local_rank}", "-c"};
  options.pass_local_rank = PassLocalRank::Underscore;
  const auto program = resolve_program(options, {{"PYTHON_EXEC", "/usr/bin/python3"}});
  REQUIRE(program);
  CHECK(output_of(worker_command(*program, {3})) ==
        "__main__ ['show it.py', '--local_rank=3', '-x', '', '3', '-c']\n");
}

TEST_CASE("a worker's command has its local rank where it was asked for", "[launcher][program]") {
  Program program{.path = "/usr/bin/python3", .prefix = {"python3", "-u", "${local_rank}.py"}};
  const std::vector<std::pair<std::string, std::string>> table{
      {"${local_rank}", "7"},
      {"$local_rank", "7"},
      {"$local_rank.x", "7.x"},
      {"$local_rank2", "$local_rank2"},
      {"$local_rank_", "$local_rank_"},
      {"$local_rank\xc3\xa9", "7\xc3\xa9"},
      {"a${local_rank}b$local_rank", "a7b7"},
      {"$$", "$"},
      {"$$local_rank", "$local_rank"},
      {"$$$local_rank", "$7"},
      {"$", "$"},
      {"x$y", "x$y"},
      {"${local_rank", "${local_rank"},
      {"${ local_rank}", "${ local_rank}"},
      {"$LOCAL_RANK", "$LOCAL_RANK"},
      {"\xff$local_rank\xfe",
       "\xff"
       "7\xfe"},
      {"", ""},
  };
  for (const auto& [text, expected] : table) {
    INFO(text);
    program.args = {text};
    program.pass_local_rank = PassLocalRank::No;
    CHECK(worker_command(program, {7}).argv ==
          Words{"python3", "-u", "${local_rank}.py", expected});
    program.pass_local_rank = PassLocalRank::Dash;
    CHECK(worker_command(program, {7}).argv ==
          Words{"python3", "-u", "${local_rank}.py", "--local-rank=7", expected});
    program.pass_local_rank = PassLocalRank::Underscore;
    CHECK(worker_command(program, {7}).argv ==
          Words{"python3", "-u", "${local_rank}.py", "--local_rank=7", expected});
  }
  CHECK(worker_command(program, {7}).path == "/usr/bin/python3");
}

}  // namespace muster::launcher
