#pragma once

#include "rendezvous/client/wire.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

/// Frames made by a seed: every kind, every field, lengths and numbers up to their limits now and
/// then. The same seed gives the same frame.
class SampleFrames {
 public:
  explicit SampleFrames(std::uint64_t seed) : random_(seed) {}

  /// One of each kind, with its name.
  [[nodiscard]] std::vector<std::pair<std::string, muster::rendezvous::ClientFrame>> client();
  [[nodiscard]] std::vector<std::pair<std::string, muster::rendezvous::ServerFrame>> server();

  [[nodiscard]] muster::Hello hello();
  [[nodiscard]] muster::Farewell farewell();

 private:
  std::uint64_t number(std::uint64_t most);
  bool coin() { return number(1) == 1; }
  std::string bytes(std::size_t least, std::size_t most);
  std::string name(std::size_t least = 0);
  std::string text();
  muster::RoundId round();
  muster::Endpoint endpoint();
  muster::Duration duration();
  muster::ExitStatus status();
  std::vector<std::string> names(std::size_t most);
  std::vector<muster::Incarnation> incarnations();
  std::vector<muster::Victim> victims();
  muster::JobSettings settings();
  muster::WorkerFailure failure();
  muster::Keep keep();
  muster::Held held();
  muster::Assignment assignment();
  muster::Verdict verdict();

  std::mt19937_64 random_;
};
