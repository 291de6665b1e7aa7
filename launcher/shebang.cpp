#include "launcher/shebang.hpp"

#include <algorithm>

namespace muster::launcher {
namespace {

constexpr std::string_view kBlanks = " \t";

std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// The program among env's arguments: behind its flags (`-S`, `-Spython3`) and variables (`A=b`).
std::string_view program_of_env(std::string_view arguments) {
  while (true) {
    std::string_view word = take_word(arguments);
    if (word == "-u" || word == "-C") {
      take_word(arguments);  // What to unset, where to go.
      continue;
    }
    if (word.starts_with("-S")) word.remove_prefix(2);
    if (word.starts_with("--split-string=")) word.remove_prefix(word.find('=') + 1);
    if (word.empty() && !arguments.empty()) continue;
    if (!word.starts_with('-') && word.find('=') == std::string_view::npos) return word;
  }
}

}  // namespace

bool Shebang::names_python() const {
  return is_python_name(through_env.empty() ? interpreter : through_env);
}

std::optional<Shebang> parse_shebang(std::string_view start) {
  if (!start.starts_with("#!")) return std::nullopt;
  std::string_view line = start.substr(2, start.find('\n') - 2);
  Shebang shebang;
  if (line.ends_with('\r')) {
    shebang.carriage_return = true;
    line.remove_suffix(1);
  }
  shebang.interpreter = take_word(line);
  if (shebang.interpreter.empty()) return std::nullopt;
  if (base_name(shebang.interpreter) == "env") shebang.through_env = program_of_env(line);
  return shebang;
}

bool is_python_name(std::string_view path) {
  constexpr std::string_view kPython = "python";
  const std::string_view name = base_name(path);
  return name.starts_with(kPython) &&
         name.find_first_not_of("0123456789.", kPython.size()) == std::string_view::npos;
}

}  // namespace muster::launcher
