#include "rendezvous/daemon/state_folder.hpp"

#include "base/posix/file.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace muster::rendezvous {
namespace {

/// The file appears whole, or not at all.
Result<void> replace(const std::string& path, const std::string& content) {
  const std::string draft = path + ".new";
  {
    std::ofstream file(draft, std::ios::binary | std::ios::trunc);
    file << content;
    file.close();
    if (!file) return fail(Errc::InvalidArgument, "write " + draft + ": it can't be written to");
  }
  std::error_code error;
  std::filesystem::rename(draft, path, error);
  if (error) return fail(Errc::InvalidArgument, "write " + path + ": " + error.message());
  return {};
}

constexpr std::string_view kRecord = ".record";
/// More than any verdict takes; a longer file is none.
constexpr std::size_t kLongestRecord = 16UL * 1024 * 1024;

std::int64_t wall_milliseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

/// From a name that `keep` made; nullopt: it is none.
std::optional<std::int64_t> instant_of(const std::string& name) {
  std::int64_t instant = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), instant);
  if (error != std::errc{} || *end != '-' || !name.ends_with(kRecord)) return std::nullopt;
  return instant;
}

/// The records of a folder, with their ages.
std::vector<std::pair<std::string, Duration>> aged_files(const std::string& folder) {
  std::vector<std::pair<std::string, Duration>> found;
  std::error_code error;
  const auto now = wall_milliseconds();
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const auto instant = instant_of(entry.path().filename().string());
    if (!instant) continue;
    // Where the clock was set back nothing is younger than now.
    found.emplace_back(entry.path().string(),
                       std::chrono::milliseconds(std::max<std::int64_t>(now - *instant, 0)));
  }
  return found;
}

}  // namespace

Result<StateFolder> StateFolder::open(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return fail(Errc::InvalidArgument, "make folder " + path + ": " + error.message());
  const std::string trial = path + "/trial";
  if (const auto written = replace(trial, ""); !written) return pass(written.error());
  std::filesystem::remove(trial, error);
  return StateFolder(path);
}

std::string StateFolder::marker_of(const Endpoint& endpoint) const {
  return path_ + "/" + to_string(endpoint) + ".served";
}

bool StateFolder::has_served(const Endpoint& endpoint) const {
  std::error_code error;
  // What can't be looked at may be there: then recovery is waited for.
  return std::filesystem::exists(marker_of(endpoint), error) || error;
}

Result<void> StateFolder::mark_served(const Endpoint& endpoint) const {
  return replace(marker_of(endpoint), "");
}

Result<void> StateFolder::keep(const std::string& content) {
  return replace(path_ + "/" + std::to_string(wall_milliseconds()) + "-" + std::to_string(++kept_) +
                     std::string(kRecord),
                 content);
}

std::vector<StateFolder::Record> StateFolder::records(Duration oldest) const {
  std::vector<Record> found;
  for (const auto& [path, age] : aged_files(path_)) {
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    if (age > oldest || error || size > kLongestRecord) continue;
    auto content = posix::read_start(path, static_cast<std::size_t>(size));
    if (content) found.push_back({.content = std::move(*content), .age = age, .path = path});
  }
  std::ranges::sort(found, std::greater<>(), &Record::age);
  return found;
}

void StateFolder::forget_older(Duration oldest) const {
  for (const auto& [path, age] : aged_files(path_)) {
    std::error_code ignored;
    if (age > oldest) std::filesystem::remove(path, ignored);
  }
}

}  // namespace muster::rendezvous
