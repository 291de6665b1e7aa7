#include "launcher/lookup.hpp"

#include "base/posix/file.hpp"

namespace muster::launcher {

bool is_program(const std::string& path) {
  const auto facts = posix::look_at(path);
  return facts && facts->kind == posix::FileFacts::Kind::Regular && facts->executable;
}

std::optional<std::string> find_on_path(std::string_view name, const Environment& environment) {
  if (name.empty() || name.find('/') != std::string_view::npos) return std::nullopt;
  const std::string folders = search_path(environment);
  std::string_view rest = folders;
  while (true) {
    const auto colon = rest.find(':');
    std::string path(rest.substr(0, colon));
    if (path.empty()) path = ".";
    path += '/';
    path += name;
    if (is_program(path)) return path;
    if (colon == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(colon + 1);
  }
}

std::string search_path(const Environment& environment) {
  const auto found = environment.find("PATH");
  // What execvp uses without one.
  return found == environment.end() ? "/bin:/usr/bin" : found->second;
}

}  // namespace muster::launcher
