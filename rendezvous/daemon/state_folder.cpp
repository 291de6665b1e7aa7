#include "rendezvous/daemon/state_folder.hpp"

#include "base/posix/file.hpp"
#include "base/posix/wall_clock.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

namespace muster::rendezvous {
namespace {

constexpr std::string_view kRecord = ".record";
constexpr std::string_view kDraft = ".new";

/// The file appears whole, or not at all.
Result<void> replace(const std::string& path, const std::string& content) {
  const std::string draft = path + std::string(kDraft);
  std::string trouble;
  {
    std::ofstream file(draft, std::ios::binary | std::ios::trunc);
    file << content;
    file.close();
    if (!file) trouble = "it can't be written to";
  }
  std::error_code error;
  if (trouble.empty()) std::filesystem::rename(draft, path, error);
  if (error) trouble = error.message();
  if (trouble.empty()) return {};
  std::filesystem::remove(draft, error);
  return fail(Errc::InvalidArgument, "write " + path + ": " + trouble);
}

/// More than any verdict takes; a longer file is none.
constexpr std::size_t kLongestRecord = 16UL * 1024 * 1024;

std::int64_t wall_milliseconds() {
  const std::chrono::microseconds now(posix::wall_now());
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

/// What a name that `keep` made says: PORT-INSTANT-NUMBER.record, or a draft of one.
struct Name {
  std::uint16_t port = 0;
  std::int64_t instant = 0;
  std::uint64_t number = 0;
  bool is_draft = false;
};
std::optional<Name> read_name(std::string_view text) {
  Name name;
  name.is_draft = text.ends_with(kDraft);
  if (name.is_draft) text.remove_suffix(kDraft.size());
  if (!text.ends_with(kRecord)) return std::nullopt;
  const auto number = [&text](auto& into, char delimiter) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
    if (error != std::errc{} || *end != delimiter) return false;  // kRecord is behind it.
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
    return true;
  };
  const bool is_ours =
      number(name.port, '-') && number(name.instant, '-') && number(name.number, kRecord.front());
  return is_ours ? std::optional(name) : std::nullopt;
}

struct File {
  Name name;
  Duration age{};
  std::string path;
};

/// The records and drafts of a folder, oldest first.
std::vector<File> files_of(const std::string& folder) {
  std::vector<File> found;
  std::error_code error;
  const auto now = wall_milliseconds();
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const auto name = read_name(entry.path().filename().string());
    if (!name) continue;
    // Where the clock was set back nothing is younger than now.
    const std::chrono::milliseconds age(std::max<std::int64_t>(now - name->instant, 0));
    found.push_back({.name = *name, .age = age, .path = entry.path().string()});
  }
  std::ranges::sort(found, {}, [](const File& file) {
    return std::tuple(-file.age, file.name.number, std::string_view(file.path));
  });
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

std::string StateFolder::marker_of(std::uint16_t port) const {
  return path_ + "/" + std::to_string(port) + ".served";
}

bool StateFolder::has_served(std::uint16_t port) const {
  std::error_code error;
  // What can't be looked at may be there: then recovery is waited for.
  return std::filesystem::exists(marker_of(port), error) || error;
}

Result<void> StateFolder::mark_served(std::uint16_t port) const {
  return replace(marker_of(port), "");
}

Result<void> StateFolder::keep(std::uint16_t port, const std::string& content) {
  return replace(path_ + "/" + std::to_string(port) + "-" + std::to_string(wall_milliseconds()) +
                     "-" + std::to_string(++kept_) + std::string(kRecord),
                 content);
}

std::vector<StateFolder::Record> StateFolder::records(std::uint16_t port, Duration oldest) const {
  std::vector<Record> found;
  for (const auto& [name, age, path] : files_of(path_)) {
    if (name.port != port || name.is_draft || age > oldest) continue;
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    if (error || size > kLongestRecord) continue;
    auto content = posix::read_start(path, static_cast<std::size_t>(size));
    if (content) found.push_back({.content = std::move(*content), .age = age, .path = path});
  }
  return found;
}

void StateFolder::forget(std::uint16_t port, Duration oldest) const {
  auto files = files_of(path_);
  std::error_code ignored;
  std::erase_if(files, [&](const File& file) {
    if (file.age > oldest) std::filesystem::remove(file.path, ignored);
    return file.age > oldest || file.name.is_draft || file.name.port != port;
  });
  for (std::size_t index = 0; index + kMostRecords < files.size(); ++index) {
    std::filesystem::remove(files[index].path, ignored);
  }
}

}  // namespace muster::rendezvous
