#pragma once

#include "rendezvous/core/kv_command.hpp"
#include "rendezvous/store/limits.hpp"
#include "rendezvous/store/opcodes.hpp"
#include "rendezvous/store/request_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::store {

namespace kv = rendezvous::kv;

/// Turns one connection's bytes into commands, and finds out its dialect on the way.
///
/// The protocol names no version. A connection that begins with VALIDATE is C or later; one table
/// serves them all. Any other is A or B, which share opcodes 0 to 6; 9 to 11 are B's. 7 is taken
/// for B's DELETE_KEY, as A's WATCH_KEY is never sent in practice. 8 is A's DELETE_KEY if nothing
/// follows its key, else B's APPEND: the caller lets a little time pass on Undecided, then settles
/// for A.
///
/// Never trusts a length: each is compared with its limit as soon as it is there (even a part of
/// it), and nothing is allocated for what has not come.
class Decoder {
 public:
  /// Shared by all connections of a server.
  struct Rules {
    Limits limits;
    std::optional<Dialect> dialect;   ///< All clients speak this one; nothing is guessed.
    bool refuse_unvalidated = false;  ///< Turns A and B away.
  };

  /// Memory shared by all connections, as a command is done with before the next is decoded.
  struct Scratch {
    std::vector<std::string_view> keys;
    std::vector<std::pair<std::string_view, std::string_view>> pairs;
    std::string refusal;           ///< Why, after Refused.
    bool unknown_dialect = false;  ///< After Refused: nothing that we know begins like this.
  };

  enum class Found {
    Command,
    Partial,    ///< More must come.
    Undecided,  ///< Opcode 8 and a key: see above.
    Refused,    ///< There is no way to go on.
  };
  struct Step {
    Found found;
    std::size_t consumed = 0;  ///< Bytes of the input that are done with, also after Partial.
    kv::Command command{};     ///< Points into the input and the scratch.
  };

  explicit Decoder(const Rules& rules);

  /// The first command of `input`, which begins where the last one ended. After Partial or
  /// Undecided the next call must bring the same bytes (without those consumed) and may bring more.
  [[nodiscard]] Step next(std::string_view input, const Rules& rules, Scratch& scratch);

  /// Nothing came behind the key: the next call takes it for DELETE_KEY, and the client for A.
  void settle_for_a() noexcept { speech_ = Speech::A; }

  /// Whether a new command means that the client has given up its pending wait: in A, which has no
  /// CANCEL_WAIT.
  [[nodiscard]] bool abandons_waits() const noexcept {
    return speech_ == Speech::A || speech_ == Speech::AOrB;
  }

  /// Whether a command was decoded yet.
  [[nodiscard]] bool has_spoken() const noexcept { return has_spoken_; }

 private:
  [[nodiscard]] bool read(Operation operation, RequestReader& request, Scratch& scratch,
                          kv::Command& command);
  [[nodiscard]] bool read_keys(RequestReader& request, Scratch& scratch);
  [[nodiscard]] bool read_pairs(RequestReader& request, Scratch& scratch);
  [[nodiscard]] bool skip_list(RequestReader& request, RequestReader::Strings kind,
                               std::uint64_t& count);

  Speech speech_ = Speech::Unknown;
  bool has_spoken_ = false;
  // How far the strings of an unfinished list were looked at, so that each is looked at once only.
  std::size_t scanned_ = 0;
  std::uint64_t strings_left_ = 0;
};

}  // namespace muster::store
