#include "rendezvous/store_client/dialect.hpp"

#include <array>

namespace muster::store_client {
namespace {

constexpr std::int8_t kNone = -1;

struct Row {
  std::string_view name;
  std::int8_t a, b, c;  ///< Opcodes in dialect A, in B, and in all later ones that have it.
  Dialect since;
};

constexpr std::array<Row, 18> kRows{{
    {"SET", 0, 0, 1, Dialect::A},
    {"COMPARE_SET", 1, 1, 2, Dialect::A},
    {"GET", 2, 2, 3, Dialect::A},
    {"ADD", 3, 3, 4, Dialect::A},
    {"CHECK", 4, 4, 5, Dialect::A},
    {"WAIT", 5, 5, 6, Dialect::A},
    {"GETNUMKEYS", 6, 6, 7, Dialect::A},
    {"DELETE_KEY", 8, 7, 8, Dialect::A},
    {"APPEND", kNone, 8, 9, Dialect::B},
    {"MULTI_GET", kNone, 9, 10, Dialect::B},
    {"MULTI_SET", kNone, 10, 11, Dialect::B},
    {"CANCEL_WAIT", kNone, 11, 12, Dialect::B},
    {"PING", kNone, kNone, 13, Dialect::D},
    {"QUEUE_PUSH", kNone, kNone, 14, Dialect::E},
    {"QUEUE_POP", kNone, kNone, 15, Dialect::E},
    {"QUEUE_LEN", kNone, kNone, 16, Dialect::E},
    {"LIST_KEYS", kNone, kNone, 17, Dialect::F},
    {"BARRIER", kNone, kNone, 18, Dialect::G},
}};

constexpr std::array<std::string_view, 7> kNames{
    "A (PyTorch 1.13 and 2.0)",   "B (PyTorch 2.1)",         "C (PyTorch 2.2 to 2.4)",
    "D (PyTorch 2.5 to 2.7)",     "E (PyTorch 2.8 and 2.9)", "F (PyTorch 2.10 and 2.11)",
    "G (PyTorch 2.12 and later)",
};

const Row& row(Operation operation) { return kRows.at(static_cast<std::size_t>(operation)); }

}  // namespace

std::optional<std::uint8_t> opcode(ServerDialect server, Operation operation) {
  const Row& entry = row(operation);
  const Dialect best = server.or_later ? Dialect::G : server.dialect;
  if (best < entry.since) return std::nullopt;
  const auto number = best == Dialect::A ? entry.a : best == Dialect::B ? entry.b : entry.c;
  return static_cast<std::uint8_t>(number);
}

Dialect first_dialect(Operation operation) { return row(operation).since; }

std::string_view to_string(Dialect dialect) { return kNames.at(static_cast<std::size_t>(dialect)); }

std::string_view to_string(Operation operation) { return row(operation).name; }

}  // namespace muster::store_client
