#include "rendezvous/store/opcodes.hpp"

#include <array>
#include <cstddef>

namespace muster::store {
namespace {

using enum Operation;

constexpr std::array kOfA{Set, CompareSet, Get, Add, Check, Wait, CountKeys, Watch, Delete};
constexpr std::array kOfB{Set,       CompareSet, Get,    Add,      Check,    Wait,
                          CountKeys, Delete,     Append, MultiGet, MultiSet, CancelWait};
// 7 is taken for B's: A's WATCH_KEY can't be reached from Python.
constexpr std::array kOfAOrB{Set,    CompareSet,     Get,      Add,      Check,     Wait, CountKeys,
                             Delete, DeleteOrAppend, MultiGet, MultiSet, CancelWait};
// 0, VALIDATE, is allowed once, at the beginning.
constexpr std::array kOfG{None,      Set,      CompareSet,  Get,      Add,      Check,      Wait,
                          CountKeys, Delete,   Append,      MultiGet, MultiSet, CancelWait, Ping,
                          QueuePush, QueuePop, QueueLength, ListKeys, Barrier};

/// How many opcodes, of those in kOfG, a dialect knows.
constexpr std::size_t opcodes_of(Dialect dialect) noexcept {
  switch (dialect) {
    case Dialect::C:
      return 13;
    case Dialect::D:
      return 14;
    case Dialect::E:
      return 17;
    case Dialect::F:
      return 18;
    case Dialect::A:
    case Dialect::B:
    case Dialect::G:
      break;
  }
  return kOfG.size();
}

template <std::size_t Size>
Operation at(const std::array<Operation, Size>& table, std::size_t opcode) noexcept {
  return opcode < Size ? table[opcode] : None;
}

}  // namespace

Operation operation_of(unsigned char opcode, Speech speech, std::optional<Dialect> fixed) noexcept {
  switch (speech) {
    case Speech::Unknown:
      return None;
    case Speech::AOrB:
      return at(kOfAOrB, opcode);
    case Speech::A: {
      const Operation operation = at(kOfA, opcode);
      const bool asked_for = fixed == Dialect::A;
      return operation == Watch && !asked_for ? Delete : operation;
    }
    case Speech::B:
      return at(kOfB, opcode);
    case Speech::Validated:
      break;
  }
  return opcode < opcodes_of(fixed.value_or(Dialect::G)) ? at(kOfG, opcode) : None;
}

}  // namespace muster::store
