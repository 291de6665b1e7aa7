#include "rendezvous/store/interpreter.hpp"

#include "rendezvous/store/buffer.hpp"
#include "rendezvous/store/encode.hpp"

namespace muster::store {

Interpreter::Turn Interpreter::run(Decoder& decoder, KvClient client, std::string_view input,
                                   std::string& out, const Room& room) {
  Turn turn{.stop = Stop::Drained, .consumed = 0, .began_to_wait = false};
  for (;;) {
    if (out.size() >= room.full_at) {
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
    bool fits = true;
    for (const KvClient each : outcome.woken) {
      if (each != client) {
        woken_.push_back(each);
      } else {
        fits = fits && answer(kv::StopWaiting{}, out, room);
      }
    }
    if (std::holds_alternative<kv::Withheld>(outcome.reply)) turn.began_to_wait = true;
    if (!fits || !answer(outcome.reply, out, room)) {
      turn.stop = Stop::Refused;
      return turn;
    }
  }
}

bool Interpreter::answer(const kv::Reply& reply, std::string& out, const Room& room) {
  if (const auto* refused = std::get_if<kv::Refused>(&reply)) {
    return refuse(std::string(refused->reason));
  }
  const std::size_t size = encoded_size(reply);
  if (size > rules_.limits.reply_bytes) {
    return refuse("its reply would be longer than the limit of " +
                  std::to_string(rules_.limits.reply_bytes) + " bytes");
  }
  const std::size_t needed = out.size() + size;
  if (needed > out.capacity()) {
    if (heap_bytes_at(out, needed) > room.heap_bytes) {
      return refuse(over_buffered_bytes(rules_.limits));
    }
    out.reserve(needed);  // In one step, not in doublings.
  }
  encode(reply, out);
  return true;
}

bool Interpreter::refuse(std::string reason) {
  scratch_.refusal = std::move(reason);
  scratch_.unknown_dialect = false;
  return false;
}

}  // namespace muster::store
