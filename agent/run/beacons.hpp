#pragma once

#include "agent/run/private_folder.hpp"
#include "base/beacon.hpp"
#include "base/log/log.hpp"
#include "base/membership.hpp"
#include "base/posix/beacon_page.hpp"
#include "base/posix/shared_note.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::agent {

struct BeaconSettings {
  /// Folders in which the private one may be made, the best first. None: workers have no beacons.
  std::vector<std::string> roots;
  bool tracks_steps = false;  ///< `--track-steps`: Python workers get the start-up hook.
};

/// The beacons of a node's workers (docs/reference/beacon.md): a page each, new in every round, in
/// a private folder that is made with the first. Beside them stands the Python module by which
/// scripts reach theirs. Where the folder can't be had the job goes on without, which is logged
/// once. Loop thread only.
class Beacons {
 public:
  /// `note` outlives it: how the keeper learns of the folder.
  Beacons(BeaconSettings settings, std::size_t workers, const posix::SharedNote& note,
          Logger& logger);

  /// The private folder, made when it is first asked for: the agent's other small files have names
  /// of their own there. Empty: it can't be had.
  [[nodiscard]] std::string folder();

  /// A worker's page for a new round: its path. Empty: it has none.
  [[nodiscard]] std::string prepare(std::uint32_t index);
  /// The folder in which its Python finds the module, and the hook; empty: there is none.
  [[nodiscard]] const std::string& python_folder() const { return python_folder_; }

  /// What a worker says; nullopt: nothing in this round.
  [[nodiscard]] std::optional<posix::BeaconPage::Said> heard(std::uint32_t index) const;

  /// What all workers are told from now on, in this round: also those that are yet to start.
  void tell(const beacon::AgentWords& words);
  [[nodiscard]] const beacon::AgentWords& told() const { return told_; }

  /// The round is over: its pages are gone, and nothing is told any more.
  void end_round();

 private:
  Result<void> make_folder();
  Result<void> make_python_folder();

  BeaconSettings settings_;
  const posix::SharedNote& note_;
  Logger& logger_;
  std::optional<PrivateFolder> folder_;
  std::string python_folder_;
  std::vector<std::optional<posix::BeaconPage>> pages_;  // By worker.
  beacon::AgentWords told_;
  bool given_up_ = false;
};

}  // namespace muster::agent
