#include "agent/run/log_folder.hpp"

#include "base/posix/fd.hpp"
#include "base/posix/folder.hpp"

#include <filesystem>
#include <system_error>

namespace muster::agent {
namespace fs = std::filesystem;

Result<LogFolder> LogFolder::create(const std::string& base, const std::string& name) {
  std::error_code error;
  fs::create_directories(base, error);
  if (error) return pass(posix::errno_error(error.value(), "make log folder " + base));
  auto path = posix::make_unique_folder(fs::absolute(base) / (name + "_"));
  if (!path) return pass(path.error());
  return LogFolder(std::move(*path));
}

Result<std::string> LogFolder::worker(std::uint32_t attempt, const std::string& local_rank) const {
  const auto path = fs::path(path_) / ("attempt_" + std::to_string(attempt)) / local_rank;
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return pass(posix::errno_error(error.value(), "make log folder " + path.string()));
  return path.string();
}

}  // namespace muster::agent
