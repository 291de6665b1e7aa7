#include "tests/rendezvous/store/store_oracle.hpp"

using muster::store::Decoder;
using muster::store::Interpreter;
using muster::store::KvClient;

namespace {

Decoder::Rules rules_for(std::optional<muster::store::Dialect> dialect) {
  Decoder::Rules rules{.limits = {}, .dialect = dialect, .refuse_unvalidated = false};
  // As small as the golden traces allow, from which the fuzzer starts.
  rules.limits.key_bytes = 20;
  rules.limits.value_bytes = 32;
  rules.limits.keys_per_request = 6;
  rules.limits.request_bytes = 150;
  return rules;
}

/// No reply waits for being sent here.
constexpr Interpreter::Room kBoundless{.full_at = ~std::size_t{0}, .heap_bytes = ~std::size_t{0}};

}  // namespace

StoreOracle::Client::Client(const Decoder::Rules& rules)
    : decoder(rules), reference(rules.limits, rules.dialect) {}

StoreOracle::StoreOracle(std::optional<muster::store::Dialect> dialect)
    : store_(rules_for(dialect)) {
  for (auto& client : clients_) client = std::make_unique<Client>(store_.rules());
}

std::string StoreOracle::arrive(std::size_t client, std::string_view bytes) {
  clients_[client]->in.append(bytes);
  clients_[client]->reference_in.append(bytes);
  run_store(client);
  run_reference(client);
  return compare();
}

std::string StoreOracle::settle(std::size_t client) {
  auto& each = *clients_[client];
  if (!each.is_undecided) return "";
  each.decoder.settle_for_a();
  each.reference.settle();
  run_store(client);
  run_reference(client);
  return compare();
}

std::string StoreOracle::leave(std::size_t client) {
  store_.store().forget(KvClient{client});
  model_.forget(client);
  clients_[client] = std::make_unique<Client>(store_.rules());
  return compare();
}

void StoreOracle::run_store(std::size_t number) {
  auto& client = *clients_[number];
  if (client.is_refused) return;
  const auto turn = store_.run(client.decoder, KvClient{number}, client.in, client.out, kBoundless);
  client.in.erase(0, turn.consumed);
  client.is_undecided = turn.stop == Interpreter::Stop::Undecided;
  client.is_refused = turn.stop == Interpreter::Stop::Refused;
  if (client.is_refused) store_.store().forget(KvClient{number});
  for (const auto woken : store_.woken()) clients_[woken.value]->out += '\0';
  store_.woken().clear();
}

void StoreOracle::run_reference(std::size_t number) {
  auto& client = *clients_[number];
  client.reference_is_undecided = false;
  while (!client.reference_is_refused) {
    const auto found = client.reference.take(client.reference_in);
    const bool has_begun = found == ReferenceCodec::Found::Command || !client.reference_in.empty();
    if (client.reference.abandons_waits() && has_begun) model_.forget(number);
    client.reference_is_undecided = found == ReferenceCodec::Found::Undecided;
    client.reference_is_refused = found == ReferenceCodec::Found::Refused;
    if (found != ReferenceCodec::Found::Command) break;
    const auto outcome = model_.execute(number, client.reference.command());
    for (const auto woken : outcome.woken) clients_[woken]->reference_out += '\0';
    client.reference_out += outcome.reply;
    client.reference_is_refused = outcome.is_refused;
  }
  if (client.reference_is_refused) model_.forget(number);
}

std::string StoreOracle::compare() const {
  for (std::size_t number = 0; number < kClients; ++number) {
    const auto& client = *clients_[number];
    const std::string who = "client " + std::to_string(number) + ": ";
    if (client.is_refused != client.reference_is_refused) return who + "one of the two refuses it";
    if (client.out != client.reference_out) return who + "what it gets differs";
    if (client.is_undecided != client.reference_is_undecided) return who + "one of the two decides";
  }
  if (store_.store().keys() != model_.keys()) return "the numbers of keys differ";
  return "";
}
