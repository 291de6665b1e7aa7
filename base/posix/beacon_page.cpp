#include "base/posix/beacon_page.hpp"

#include "base/posix/boot_clock.hpp"
#include "base/posix/private_file.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace muster::posix {

Result<BeaconPage> BeaconPage::create(const std::string& path, const beacon::AgentWords& words) {
  beacon::Page page;
  page.magic = beacon::kMagic;
  page.version = beacon::kVersion;
  page.agent = words;
  std::array<char, beacon::kSize> bytes{};
  std::memcpy(bytes.data(), &page, sizeof page);
  // Written, not only sized: on a full file system this fails, a worker's store would kill it.
  auto file = write_new_file(path, std::string_view(bytes.data(), bytes.size()));
  if (!file) return pass(file.error());
  return BeaconPage(path, std::move(*file));
}

BeaconPage::BeaconPage(BeaconPage&& other) noexcept
    : path_(std::exchange(other.path_, {})), file_(std::move(other.file_)) {}

BeaconPage::~BeaconPage() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

std::optional<BeaconPage::Said> BeaconPage::read() const {
  constexpr int kTries = 3;  // Whoever writes without pause is read as it is.
  beacon::WorkerWords words;
  beacon::WorkerWords before;
  for (int tries = 0; tries < kTries; ++tries) {
    before = words;
    if (::pread(file_.get(), &words, sizeof words, offsetof(beacon::Page, worker)) !=
        ssize_t{sizeof words})
      return std::nullopt;
    if (tries > 0 && std::memcmp(&before, &words, sizeof words) == 0) break;
  }
  if (words.pid == 0) return std::nullopt;
  Said said;
  said.step = words.step;
  said.saves = words.saves;
  said.phase.assign(words.phase.data(),
                    std::min<std::uint64_t>(words.phase_size, beacon::kLongestPhase));
  const auto now = boot_now();
  said.at = TimePoint(
      Duration(std::clamp<std::int64_t>(words.heartbeat, 0, now.time_since_epoch().count())));
  said.heeds_requests = words.save_heard > 0;
  return said;
}

void BeaconPage::write(const beacon::AgentWords& words) const noexcept {
  // A page that can't be written reaches nobody: whoever needs the worker's answer has a deadline.
  [[maybe_unused]] const auto written =
      ::pwrite(file_.get(), &words, sizeof words, offsetof(beacon::Page, agent));
}

}  // namespace muster::posix
