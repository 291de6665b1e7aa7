#include "launcher/python.hpp"

#include "base/posix/file.hpp"
#include "launcher/lookup.hpp"
#include "launcher/text.hpp"

#include <filesystem>
#include <optional>
#include <vector>

namespace muster::launcher {
namespace {

namespace fs = std::filesystem;

/// The folder of the program that was called, symbolic links unresolved: a link to it in an
/// environment counts as there.
std::optional<fs::path> folder_of(const std::string& invoked_as, const Environment& environment) {
  if (invoked_as.empty()) return std::nullopt;
  std::optional<std::string> path = invoked_as;
  if (invoked_as.find('/') == std::string::npos) path = find_on_path(invoked_as, environment);
  if (!path) return std::nullopt;
  std::error_code error;
  const fs::path whole = fs::absolute(*path, error);
  if (error) return std::nullopt;
  return whole.lexically_normal().parent_path();
}

std::optional<std::string> python_in(const fs::path& folder) {
  for (const char* name : {"python", "python3"}) {
    std::string path = (folder / name).string();
    if (is_program(path)) return path;
  }
  return std::nullopt;
}

/// A version manager puts a script in Python's place that looks for the right one at each start.
std::string shim_note(const std::string& path) {
  const auto start = posix::read_start(path, 2);
  return start && *start == "#!" ? "; it is a script, perhaps a version manager's shim" : "";
}

class Search {
 public:
  Search(const std::string& invoked_as, const Environment& environment)
      : invoked_as_(invoked_as), environment_(environment) {}

  Result<ChosenPython> choose() {
    if (const auto asked = value_of(environment_, "PYTHON_EXEC")) return asked_for(*asked);
    if (const auto beside = beside_us()) return *beside;
    for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
      if (const auto found = in_environment_of(variable)) return *found;
    }
    for (const char* name : {"python3", "python"}) {
      if (const auto path = find_on_path(name, environment_)) {
        return ChosenPython{*path, "the first " + std::string(name) + " on PATH" +
                                       shim_note(*path) + passed_over()};
      }
    }
    return fail(Errc::NotFound,
                "no Python was found: PYTHON_EXEC is unset, " + looked_at() +
                    "no python3 or python in PATH=" + in_quotes(search_path(environment_)) +
                    "; set PYTHON_EXEC to the Python that the workers need");
  }

 private:
  Result<ChosenPython> asked_for(const std::string& asked) const {
    std::optional<std::string> path = asked;
    if (asked.find('/') == std::string::npos) path = find_on_path(asked, environment_);
    if (path && is_program(*path)) return ChosenPython{*path, "PYTHON_EXEC is set"};
    return fail(Errc::NotFound, "PYTHON_EXEC: " + in_quotes(asked) +
                                    " is no program that can be executed" +
                                    (path ? "" : ", nor is there one on PATH"));
  }

  std::optional<ChosenPython> beside_us() {
    const auto folder = folder_of(invoked_as_, environment_);
    if (!folder) {
      looked_at_.emplace_back("where muster was called from is not known");
      return std::nullopt;
    }
    const fs::path above = folder->parent_path();
    std::error_code ignored;
    std::string kind;
    if (fs::is_regular_file(above / "pyvenv.cfg", ignored)) kind = "virtual";
    if (kind.empty() && fs::is_directory(above / "conda-meta", ignored)) kind = "conda";
    if (kind.empty()) {
      looked_at_.push_back(in_quotes(folder->string()) + ", where muster is, is in no environment");
      return std::nullopt;
    }
    const std::string name = "the " + kind + " environment " + in_quotes(above.string());
    if (const auto path = python_in(*folder)) {
      return ChosenPython{*path, "beside muster in " + name};
    }
    looked_at_.push_back(name + ", where muster is, has no python");
    passed_over_.push_back(looked_at_.back());
    return std::nullopt;
  }

  std::optional<ChosenPython> in_environment_of(const std::string& variable) {
    const auto prefix = value_of(environment_, variable);
    if (!prefix) {
      looked_at_.push_back(variable + " is unset");
      return std::nullopt;
    }
    if (const auto path = python_in(fs::path(*prefix) / "bin")) {
      return ChosenPython{*path, variable + " is set" + passed_over()};
    }
    looked_at_.push_back(variable + "=" + in_quotes(*prefix) + " has no bin/python");
    passed_over_.push_back(looked_at_.back());
    return std::nullopt;
  }

  /// What had a claim before the one chosen, but no Python.
  std::string passed_over() const {
    std::string text;
    for (const std::string& place : passed_over_) text += "; " + place;
    return text;
  }

  std::string looked_at() const {
    std::string text;
    for (const std::string& place : looked_at_) text += place + ", ";
    return text;
  }

  const std::string& invoked_as_;
  const Environment& environment_;
  std::vector<std::string> looked_at_;
  std::vector<std::string> passed_over_;
};

}  // namespace

Result<ChosenPython> choose_python(const std::string& invoked_as, const Environment& environment) {
  return Search(invoked_as, environment).choose();
}

}  // namespace muster::launcher
