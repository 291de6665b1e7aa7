#include "agent/run/beacons.hpp"

#include "agent/run/python_files.hpp"
#include "base/posix/folder.hpp"
#include "base/posix/private_file.hpp"
#include "base/text.hpp"

#include <utility>

namespace muster::agent {

Beacons::Beacons(BeaconSettings settings, std::size_t workers, const posix::SharedNote& note,
                 Logger& logger)
    : settings_(std::move(settings)), note_(note), logger_(logger), pages_(workers) {
  given_up_ = settings_.roots.empty();
}

std::string Beacons::folder() {
  if (given_up_ && !folder_) return {};
  return make_folder() ? folder_->path() : std::string();
}

std::string Beacons::prepare(std::uint32_t index) {
  if (given_up_) return {};
  if (python_folder_.empty()) {
    if (const auto made = make_python_folder(); !made) {
      given_up_ = true;
      python_folder_.clear();
      logger_.warn("workers have no beacons: {}", printable(made.error().message));
      return {};
    }
  }
  auto path = folder_->path() + "/" + std::to_string(index);
  auto page = posix::BeaconPage::create(path, told_);
  if (!page) {
    given_up_ = true;
    logger_.warn("workers have no beacons from now on: {}", printable(page.error().message));
    return {};
  }
  pages_[index].emplace(std::move(*page));
  return path;
}

Result<void> Beacons::make_folder() {
  if (folder_) return {};
  auto folder = PrivateFolder::create(settings_.roots, note_);
  if (!folder) return pass(folder.error());
  folder_.emplace(std::move(*folder));
  return {};
}

Result<void> Beacons::make_python_folder() {
  constexpr unsigned kMode = 0700;
  if (auto made = make_folder(); !made) return made;
  python_folder_ = folder_->path() + "/python";
  for (const auto& made : {python_folder_, python_folder_ + "/muster"}) {
    if (auto done = posix::make_folder(made, kMode); !done) return done;
  }
  for (const auto& file : python_files()) {
    if (file.is_hook && !settings_.tracks_steps) continue;
    const auto written =
        posix::write_new_file(python_folder_ + "/" + std::string(file.path), file.text);
    if (!written) return pass(written.error());
  }
  return {};
}

std::optional<posix::BeaconPage::Said> Beacons::heard(std::uint32_t index) const {
  return pages_[index] ? pages_[index]->read() : std::nullopt;
}

void Beacons::tell(const beacon::AgentWords& words) {
  told_ = words;
  for (const auto& page : pages_) {
    if (page) page->write(told_);
  }
}

void Beacons::end_round() {
  for (auto& page : pages_) page.reset();
  told_ = {};
}

}  // namespace muster::agent
