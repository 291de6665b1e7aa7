#pragma once

#include "base/error.hpp"
#include "base/membership.hpp"
#include "rendezvous/core/job_view.hpp"

#include <string>
#include <variant>
#include <vector>

/// What the membership core wants done, as data: the server performs the actions in order.
namespace muster::rendezvous::action {

struct Send {
  LinkId link;
  ServerMessage message;
};
struct Acknowledge {  ///< Of a farewell: it is known here. Then close.
  LinkId link;
};
struct Close {  ///< After what was sent.
  LinkId link;
};
struct Answer {  ///< To a command: what was done, or why not.
  CommandId id;
  Result<std::string> outcome;
};
struct Note {  ///< A decision and its reason, for the log and for whoever watches.
  enum class Level { Debug, Info, Warn } level = Level::Info;
  std::string job;
  std::string text;
};
/// The endpoint's c10d store is this job's workers' (JobSettings::store_on_server): from now it
/// takes connections, empty. CloseStore: it takes none, and drops all keys and connections.
struct OpenStore {
  std::string job;
  RoundId round;
  std::vector<std::string> admitted;  ///< Addresses, as in Assignment.
  std::string secret;                 ///< Of the round: who knocks with it is admitted too.
};
struct CloseStore {
  std::string job;
};
struct Ended {  ///< A job has its verdict and every agent left. The embedded server's cue.
  std::string job;
  Verdict verdict;
};

using Action = std::variant<Send, Acknowledge, Close, Answer, Note, OpenStore, CloseStore, Ended>;

}  // namespace muster::rendezvous::action
