#include "launcher/program.hpp"

#include "base/posix/file.hpp"
#include "launcher/lookup.hpp"
#include "launcher/shebang.hpp"
#include "launcher/text.hpp"

#include <filesystem>
#include <string_view>
#include <utility>

namespace muster::launcher {
namespace {

namespace fs = std::filesystem;
using posix::FileFacts;

/// What --run-path runs: the script as __main__ in this interpreter, seeing its own name and
/// arguments.
constexpr const char* kRunPath =
    "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')";

tl::unexpected<Error> refuse(std::string_view script, const std::string& why) {
  return fail(Errc::InvalidArgument, in_quotes(script) + " " + why);
}

std::string current_folder() {
  std::error_code error;
  const fs::path folder = fs::current_path(error);
  return error ? "the current folder" : in_quotes(folder.string());
}

/// A name that no program takes for a flag.
std::string no_flag(const std::string& script) {
  return script.starts_with('-') ? "./" + script : script;
}

/// Whether Python runs it whatever its first bytes are: source, byte code, an archive.
bool has_python_name(std::string_view script) {
  return script.ends_with(".py") || script.ends_with(".pyc") || script.ends_with(".pyz");
}

/// Whether a file that begins so is a program rather than text: ELF, or of a format registered with
/// the kernel.
bool is_binary(std::string_view start) {
  return start.starts_with(
             "\x7f"
             "ELF") ||
         start.find('\0') != std::string_view::npos;
}

class Resolver {
 public:
  Resolver(const Options& options, const Environment& environment)
      : options_(options), environment_(environment) {}

  Result<Program> resolve() const {
    if (options_.script.empty()) return fail(Errc::InvalidArgument, "the script's name is empty");
    switch (options_.program_kind) {
      case ProgramKind::Module:
        return with_python({"-m", options_.script}, "--module was given");
      case ProgramKind::NoPython:
        return as_given();
      case ProgramKind::RunPath:
        return run_path();
      case ProgramKind::Script:
        break;
    }
    return script();
  }

 private:
  Program as_it_is(std::string path, std::string name, std::string why) const {
    Program program;
    program.path = std::move(path);
    program.prefix = {std::move(name)};
    program.why = std::move(why);
    return program;
  }

  Result<Program> with_python(const std::vector<std::string>& arguments, std::string why) const {
    auto python = choose_python(options_.invoked_as, environment_);
    if (!python) return pass(python.error());
    Program program;
    program.path = python->path;
    program.prefix = {python->path, "-u"};
    program.prefix.insert(program.prefix.end(), arguments.begin(), arguments.end());
    program.why = std::move(why);
    program.python = std::move(*python);
    return program;
  }

  Result<Program> python_script(std::string why) const {
    return with_python({no_flag(options_.script)}, std::move(why));
  }

  /// --no-python: what execvp would run.
  Result<Program> as_given() const {
    const std::string& name = options_.script;
    if (name.find('/') != std::string::npos) return executable_file(name, name);
    if (const auto path = find_on_path(name, environment_)) return executable_file(*path, name);
    return not_on_path(name);
  }

  tl::unexpected<Error> not_on_path(const std::string& name) const {
    std::string hint;
    if (posix::look_at("./" + name)) hint = "; the file in the current folder is ./" + name;
    return fail(Errc::NotFound, "no program " + in_quotes(name) +
                                    " in PATH=" + in_quotes(search_path(environment_)) + hint);
  }

  Result<Program> run_path() const {
    const auto facts = existing(options_.script);
    if (!facts) return pass(facts.error());
    if (facts->kind == FileFacts::Kind::Regular && !facts->readable) {
      return refuse(options_.script, "may not be read by this user");
    }
    return with_python({"-c", kRunPath, options_.script}, "--run-path was given");
  }

  /// Neither flag: a file here, or else, for a name without a slash, a program on PATH.
  Result<Program> script() const {
    const std::string& name = options_.script;
    if (name.find('/') != std::string::npos) return file_here(name);
    auto here = file_here("./" + name);
    if (here) return here;
    if (const auto path = find_on_path(name, environment_)) return program_on_path(*path);
    if (here.error().code != Errc::NotFound || has_python_name(name)) return here;
    std::string hint;
    if (is_python_name(name)) {
      hint = "; muster finds Python by itself: give it the Python file, or -m and a module";
    }
    return fail(Errc::NotFound, "no file " + in_quotes(name) + " in " + current_folder() +
                                    ", and no program of that name in PATH=" +
                                    in_quotes(search_path(environment_)) + hint);
  }

  /// The facts of a file that must be there; errors call it what the user calls it.
  Result<FileFacts> existing(const std::string& path) const {
    auto facts = posix::look_at(path);
    if (facts) return facts;
    const std::string& name = options_.script;
    if (facts.error().code != Errc::NotFound) {
      const auto cause = facts.error().message.rfind(": ");
      return fail(Errc::InvalidArgument, in_quotes(name) + facts.error().message.substr(cause));
    }
    std::error_code error;
    const fs::path target = fs::read_symlink(path, error);
    if (!error) {
      return refuse(
          name, "is a symbolic link to " + in_quotes(target.string()) + ", which does not exist");
    }
    const bool absolute = name.starts_with('/');
    return fail(Errc::NotFound,
                "no file " + in_quotes(name) + (absolute ? "" : " in " + current_folder()));
  }

  Result<Program> file_here(const std::string& path) const {
    const std::string& name = options_.script;
    const auto facts = existing(path);
    if (!facts) return pass(facts.error());
    if (facts->kind == FileFacts::Kind::Directory) {
      if (posix::look_at(path + "/__main__.py"))
        return python_script("it is a folder with a __main__.py");
      return refuse(name, "is a folder without a __main__.py: name the script in it");
    }
    if (facts->kind == FileFacts::Kind::Other) {
      return refuse(
          name, "is no file but a pipe, socket or device: every worker must read the whole of it");
    }
    if (has_python_name(name)) {
      if (!facts->readable) return refuse(name, "may not be read by this user");
      return python_script("its name ends in " + name.substr(name.rfind('.')));
    }
    const auto start = posix::read_start(path, kShebangLimit);
    const auto shebang = start ? parse_shebang(*start) : std::nullopt;
    if (shebang && shebang->names_python()) return python_script("its #! line names Python");
    if (!facts->executable) return not_executable(*facts, start ? *start : "", shebang);
    return executable_file(path, path);
  }

  /// A program on PATH is what the shell makes of it: a script of another Python's environment
  /// keeps that Python.
  Result<Program> program_on_path(const std::string& path) const {
    const auto start = posix::read_start(path, kShebangLimit);
    const auto shebang = start ? parse_shebang(*start) : std::nullopt;
    if (!shebang || !shebang->names_python()) return executable_file(path, options_.script);
    if (!shebang->through_env.empty())
      return with_python({path}, in_quotes(path) + " asks for any Python");
    if (!is_program(shebang->interpreter)) return missing_interpreter(path, *shebang);
    Program program =
        as_it_is(shebang->interpreter, shebang->interpreter, in_quotes(path) + " is on PATH");
    program.prefix.insert(program.prefix.end(), {"-u", path});
    program.python =
        ChosenPython{shebang->interpreter, "the #! line of " + in_quotes(path) + " names it"};
    return program;
  }

  /// A file that is executed as it is, under the name `name`: what exec would only fail on is
  /// refused here.
  Result<Program> executable_file(const std::string& path, const std::string& name) const {
    const auto facts = existing(path);
    if (!facts) return pass(facts.error());
    if (facts->kind == FileFacts::Kind::Directory)
      return refuse(options_.script, "is a folder, not a program");
    if (!facts->executable) {
      const auto begin = posix::read_start(path, kShebangLimit);
      return not_executable(*facts, begin ? *begin : "",
                            begin ? parse_shebang(*begin) : std::nullopt);
    }
    const auto start = posix::read_start(path, kShebangLimit);
    if (start) {
      if (const auto shebang = parse_shebang(*start)) {
        if (shebang->carriage_return || !interpreter_found(*shebang))
          return missing_interpreter(path, *shebang);
      } else if (!is_binary(*start)) {
        return no_program(*start);
      }
    }
    return as_it_is(path, name,
                    path == name ? "it is executable" : "it is " + in_quotes(path) + " on PATH");
  }

  bool interpreter_found(const Shebang& shebang) const {
    if (!is_program(shebang.interpreter)) return false;
    if (shebang.through_env.empty()) return true;
    if (shebang.through_env.find('/') != std::string::npos) return is_program(shebang.through_env);
    return find_on_path(shebang.through_env, environment_).has_value();
  }

  tl::unexpected<Error> missing_interpreter(const std::string& path, const Shebang& shebang) const {
    if (shebang.carriage_return) {
      return refuse(options_.script,
                    "has Windows line ends, which break its #! line (" +
                        in_quotes(shebang.interpreter + "\r") +
                        "): remove the carriage returns, with dos2unix for example");
    }
    if (is_program(shebang.interpreter)) {
      return refuse(options_.script, "asks for " + in_quotes(shebang.through_env) +
                                         " in its #! line, which is not in PATH=" +
                                         in_quotes(search_path(environment_)));
    }
    return refuse(path == "./" + options_.script ? options_.script : path,
                  "has a #! line that names " + in_quotes(shebang.interpreter) +
                      ", which is no program that can be executed here");
  }

  /// Executable by its mode, but text that no kernel runs.
  tl::unexpected<Error> no_program(std::string_view start) const {
    if (start.empty()) return refuse(options_.script, "is empty: there is nothing to run");
    if (start.starts_with("\xEF\xBB\xBF#!")) {
      return refuse(options_.script,
                    "has a byte order mark before its #! line: save it without one");
    }
    return refuse(
        options_.script,
        "is executable, but text without a #! line: begin it with one, such as #!/bin/sh or "
        "#!/usr/bin/env python3");
  }

  tl::unexpected<Error> not_executable(const FileFacts& facts, std::string_view start,
                                       const std::optional<Shebang>& shebang) const {
    const std::string& name = options_.script;
    if (facts.marked_executable) {
      return refuse(name,
                    "may not be executed: not by this user, or its file system is mounted noexec");
    }
    const std::string chmod = "make it executable with chmod +x";
    if (shebang) {
      const std::string& runner =
          shebang->through_env.empty() ? shebang->interpreter : shebang->through_env;
      return refuse(name,
                    "is a script for " + in_quotes(runner) + ", but not executable: " + chmod);
    }
    if (is_binary(start)) {
      return refuse(name, "is a program, but not executable: " + chmod);
    }
    if (!facts.readable) return refuse(name, "may be neither read nor executed by this user");
    return refuse(
        name,
        "is not executable, and nothing says that it is Python: name it .py or begin it with "
        "#!/usr/bin/env python3, or else " +
            chmod);
  }

  const Options& options_;
  const Environment& environment_;
};

}  // namespace

Result<Program> resolve_program(const Options& options, const Environment& environment) {
  auto program = Resolver(options, environment).resolve();
  if (program) {
    program->args = options.script_args;
    program->pass_local_rank = options.pass_local_rank;
  }
  return program;
}

}  // namespace muster::launcher
