#include "base/posix/cgroup.hpp"

#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

namespace muster::posix {
namespace {

bool lists(std::string_view comma_separated, std::string_view word) {
  while (!comma_separated.empty()) {
    const auto comma = comma_separated.find(',');
    if (comma_separated.substr(0, comma) == word) return true;
    if (comma == std::string_view::npos) return false;
    comma_separated.remove_prefix(comma + 1);
  }
  return false;
}

/// Where a cgroup hierarchy is mounted, and which of its folders the mount shows.
struct Mount {
  std::string root;
  std::string point;
};

std::optional<Mount> find_mount(const std::string& proc, const std::string& controller, bool v2) {
  std::ifstream in(proc + "/mountinfo");
  std::string line;
  while (std::getline(in, line)) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line.substr(0, dash)), after(line.substr(dash + 3));
    std::string id, parent, device, root, point, type, source, options;
    before >> id >> parent >> device >> root >> point;
    after >> type >> source >> options;
    if (v2 ? type == "cgroup2" : type == "cgroup" && lists(options, controller))
      return Mount{root, point};
  }
  return std::nullopt;
}

}  // namespace

std::string first_line(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

std::vector<Cgroup> cgroups_of(int pid, const std::string& controller) {
  const std::string proc = "/proc/" + std::to_string(pid);
  std::ifstream in(proc + "/cgroup");
  std::string line, path;
  bool v2 = false;
  while (std::getline(in, line)) {  // `4:memory:/job7`, or `0::/job7` for v2.
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    if (lists(controllers, controller)) {
      path = line.substr(second + 1);
      v2 = false;
      break;  // A controller is in one hierarchy only: v1's has it.
    }
    if (controllers.empty()) {
      path = line.substr(second + 1);
      v2 = true;
    }
  }
  const auto mount = path.empty() ? std::nullopt : find_mount(proc, controller, v2);
  if (!mount) return {};

  std::string below = path;
  const auto& root = mount->root;  // What of the hierarchy the mount shows.
  if (root != "/" && below.starts_with(root) &&
      (below.size() == root.size() || below[root.size()] == '/')) {
    below.erase(0, root.size());
  }
  std::vector<Cgroup> groups;
  while (true) {
    groups.push_back({below.empty() ? "/" : below, mount->point + (below == "/" ? "" : below), v2});
    if (below.empty() || below == "/") return groups;
    const auto parent = below.rfind('/');
    below.erase(parent == std::string::npos ? 0 : parent);
  }
}

}  // namespace muster::posix
