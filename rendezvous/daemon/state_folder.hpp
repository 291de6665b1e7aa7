#pragma once

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace muster::rendezvous {

/// What a standing server remembers over its restarts, in files of one folder. Loop thread only.
class StateFolder {
 public:
  /// Makes the folder, and those above it, where they are missing. One that can't be written to is
  /// an error now, not later.
  [[nodiscard]] static Result<StateFolder> open(const std::string& path);

  /// Whether a server has been at this endpoint before: if not, and only then, nobody can hold a
  /// round that such a server gave out (protocol.md 6).
  [[nodiscard]] bool has_served(const Endpoint& endpoint) const;
  [[nodiscard]] Result<void> mark_served(const Endpoint& endpoint) const;

  /// A record of an instant, each in a file of its own. The instants are the wall clock's: the
  /// steady one is another after a restart of the machine.
  struct Record {
    std::string content;
    Duration age{};
    std::string path;
  };
  [[nodiscard]] Result<void> keep(const std::string& content);
  /// All that are not older than this, oldest first.
  [[nodiscard]] std::vector<Record> records(Duration oldest) const;
  void forget_older(Duration oldest) const;

 private:
  explicit StateFolder(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] std::string marker_of(const Endpoint& endpoint) const;
  std::string path_;
  std::uint64_t kept_ = 0;  // Tells records of one instant apart.
};

}  // namespace muster::rendezvous
