#include "agent/run/log_folder.hpp"

#include "base/posix/fd.hpp"
#include "base/posix/folder.hpp"

#include <filesystem>
#include <system_error>

namespace muster::agent {
namespace fs = std::filesystem;
namespace {

Result<std::string> made(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return pass(posix::errno_error(error.value(), "make log folder " + path.string()));
  return path.string();
}

}  // namespace

Result<LogFolder> LogFolder::create(const std::string& base, const std::string& name) {
  if (const auto there = made(base); !there) return pass(there.error());
  auto path = posix::make_unique_folder(fs::absolute(base) / (name + "_"));
  if (!path) return pass(path.error());
  return LogFolder(std::move(*path));
}

Result<std::string> LogFolder::attempt(std::uint32_t attempt) const {
  return made(fs::path(path_) / ("attempt_" + std::to_string(attempt)));
}

Result<std::string> LogFolder::worker(std::uint32_t attempt, const std::string& local_rank) const {
  return made(fs::path(path_) / ("attempt_" + std::to_string(attempt)) / local_rank);
}

}  // namespace muster::agent
