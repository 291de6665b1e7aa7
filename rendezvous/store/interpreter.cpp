#include "rendezvous/store/interpreter.hpp"

#include "rendezvous/store/encode.hpp"

namespace muster::store {

Interpreter::Turn Interpreter::run(Decoder& decoder, KvClient client, std::string_view input,
                                   std::string& out, std::size_t full_at) {
  Turn turn{.stop = Stop::Drained, .consumed = 0, .began_to_wait = false};
  for (;;) {
    if (out.size() >= full_at) {
      turn.stop = Stop::Full;
      return turn;
    }
    const auto rest = input.substr(turn.consumed);
    const auto step = decoder.next(rest, rules_, scratch_);
    turn.consumed += step.consumed;
    // The first byte of a new command is enough to know that the client waits no longer: a reply
    // that came while the rest is on its way would be taken for that command's.
    if (rest.size() > step.consumed || step.found == Decoder::Found::Command) {
      if (decoder.abandons_waits()) store_.forget(client);
    }
    switch (step.found) {
      case Decoder::Found::Command:
        break;
      case Decoder::Found::Partial:
        return turn;
      case Decoder::Found::Undecided:
        turn.stop = Stop::Undecided;
        return turn;
      case Decoder::Found::Refused:
        turn.stop = Stop::Refused;
        return turn;
    }

    ++operations_;
    const auto outcome = store_.execute(client, step.command);
    for (const KvClient each : outcome.woken) {
      if (each == client) {
        encode_stop_waiting(out);
      } else {
        woken_.push_back(each);
      }
    }
    if (std::holds_alternative<kv::Withheld>(outcome.reply)) turn.began_to_wait = true;
    if (!answer(outcome.reply, out)) {
      turn.stop = Stop::Refused;
      return turn;
    }
  }
}

bool Interpreter::answer(const kv::Reply& reply, std::string& out) {
  if (const auto* refused = std::get_if<kv::Refused>(&reply)) {
    scratch_.refusal = refused->reason;
    scratch_.unknown_dialect = false;
    return false;
  }
  if (encoded_size(reply) > rules_.limits.reply_bytes) {
    scratch_.refusal = "its reply would be longer than the limit of " +
                       std::to_string(rules_.limits.reply_bytes) + " bytes";
    scratch_.unknown_dialect = false;
    return false;
  }
  encode(reply, out);
  return true;
}

}  // namespace muster::store
