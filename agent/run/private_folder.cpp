#include "agent/run/private_folder.hpp"

#include "base/posix/folder.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

namespace muster::agent {
namespace {

void remove_all(const std::string& path) {
  std::error_code ignored;  // What can't be removed is small, and is nobody's trouble now.
  std::filesystem::remove_all(path, ignored);
}

}  // namespace

Result<PrivateFolder> PrivateFolder::create(std::span<const std::string> roots,
                                            const posix::SharedNote& note) {
  constexpr unsigned kMode = 0700;
  const std::string prefix = "muster-job-";
  std::string reasons;
  for (const auto& root : roots) {
    auto path = posix::make_unique_folder(root + "/" + prefix, kMode);
    if (path) {
      posix::remove_unheld(root, prefix);
      return PrivateFolder(std::move(*path), note);
    }
    reasons += (reasons.empty() ? "" : "; ") + path.error().message;
  }
  return fail(Errc::Unavailable, std::move(reasons));
}

PrivateFolder::PrivateFolder(std::string path, const posix::SharedNote& note)
    : path_(std::move(path)), note_(&note) {
  if (auto held = posix::hold_folder(path_)) held_ = std::move(*held);
  (void)note_->write(path_);
}

PrivateFolder::PrivateFolder(PrivateFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), note_(other.note_), held_(std::move(other.held_)) {}

PrivateFolder::~PrivateFolder() {
  if (path_.empty()) return;
  remove_all(path_);
  (void)note_->write({});
}

void remove_private_folder(const posix::SharedNote& note) {
  if (const auto path = note.read(); !path.empty()) remove_all(path);
}

}  // namespace muster::agent
