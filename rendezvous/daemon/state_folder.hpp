#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace muster::rendezvous {

/// What a standing server remembers over its restarts, in files of one folder. Servers of several
/// ports may share it: each finds its own. The port alone says whose they are, since one endpoint
/// may be spelt in many ways. One thread at a time; calls may take as long as the disk does.
class StateFolder {
 public:
  /// Makes the folder, and those above it, where they are missing. One that can't be written to is
  /// an error now, not later.
  [[nodiscard]] static Result<StateFolder> open(const std::string& path);

  /// Whether a server has been at this port before: if not, and only then, nobody can hold a round
  /// that such a server gave out (protocol.md 6).
  [[nodiscard]] bool has_served(std::uint16_t port) const;
  [[nodiscard]] Result<void> mark_served(std::uint16_t port) const;

  /// A record of an instant, each in a file of its own. The instants are the wall clock's: the
  /// steady one is another after a restart of the machine.
  struct Record {
    std::string content;
    Duration age{};
    std::string path;
  };
  [[nodiscard]] Result<void> keep(std::uint16_t port, const std::string& content);
  /// All of the port that are not older than this, oldest first.
  [[nodiscard]] std::vector<Record> records(std::uint16_t port, Duration oldest) const;
  /// Of all ports, what is older, and what a writer that died left behind. Then the oldest of the
  /// port, until there are no more than kMostRecords.
  static constexpr std::size_t kMostRecords = 4096;
  void forget(std::uint16_t port, Duration oldest) const;

 private:
  explicit StateFolder(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] std::string marker_of(std::uint16_t port) const;
  std::string path_;
  std::uint64_t kept_ = 0;  // Tells records of one instant apart.
};

}  // namespace muster::rendezvous
