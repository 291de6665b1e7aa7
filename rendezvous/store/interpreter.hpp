#pragma once

#include "rendezvous/core/kv_store.hpp"
#include "rendezvous/store/decoder.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::store {

using rendezvous::KvClient;
using rendezvous::KvStore;

/// The store as its clients talk to it: bytes in, bytes out, for any number of connections; no
/// sockets, no clock.
class Interpreter {
 public:
  explicit Interpreter(const Decoder::Rules& rules)
      : rules_(rules), store_({.stored_bytes = rules_.limits.stored_bytes}) {}

  enum class Stop {
    Drained,    ///< All requests of the input are done; what is left is the beginning of one.
    Undecided,  ///< See Decoder.
    Full,       ///< `out` has got as long as `full_at`: call again when it is taken.
    Refused,    ///< See `refusal`. `out` is still due, then the connection closes.
  };
  /// What `out` may become.
  struct Room {
    std::size_t full_at;     ///< No request is executed once it is so long.
    std::size_t heap_bytes;  ///< A reply for which it would need more is refused, and not built.
  };
  struct Turn {
    Stop stop;
    std::size_t consumed;  ///< Bytes of the input.
    bool began_to_wait;    ///< A reply is withheld.
  };
  /// Executes the requests in `input`, and appends to `out` what this client gets, in the order in
  /// which it is due. Others that get StopWaiting are added to `woken`.
  Turn run(Decoder& decoder, KvClient client, std::string_view input, std::string& out,
           const Room& room);

  /// Who gets StopWaiting, first come first; for the caller to clear.
  [[nodiscard]] std::vector<KvClient>& woken() noexcept { return woken_; }

  /// Why the last run refused.
  struct Refusal {
    std::string_view reason;
    bool unknown_dialect;  ///< Nothing that we know begins like this.
  };
  [[nodiscard]] Refusal refusal() const noexcept {
    return {scratch_.refusal, scratch_.unknown_dialect};
  }

  [[nodiscard]] const Decoder::Rules& rules() const noexcept { return rules_; }
  [[nodiscard]] KvStore& store() noexcept { return store_; }
  [[nodiscard]] const KvStore& store() const noexcept { return store_; }
  [[nodiscard]] std::uint64_t operations() const noexcept { return operations_; }

 private:
  [[nodiscard]] bool answer(const kv::Reply& reply, std::string& out, const Room& room);
  [[nodiscard]] bool refuse(std::string reason);

  Decoder::Rules rules_;
  KvStore store_;
  Decoder::Scratch scratch_;
  std::vector<KvClient> woken_;
  std::uint64_t operations_ = 0;
};

}  // namespace muster::store
