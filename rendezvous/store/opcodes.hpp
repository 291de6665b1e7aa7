#pragma once

#include "rendezvous/store/limits.hpp"

#include <cstdint>
#include <optional>

namespace muster::store {

/// What is known of how a connection's client speaks.
enum class Speech : std::uint8_t {
  Unknown,  ///< Nothing has come yet.
  AOrB,     ///< It did not begin with VALIDATE.
  A,
  B,
  Validated,  ///< C or later.
};

/// What an opcode means.
enum class Operation : std::uint8_t {
  None,  ///< Nothing.
  Set,
  CompareSet,
  Get,
  Add,
  Check,
  Wait,
  CountKeys,
  Watch,
  Delete,
  DeleteOrAppend,  ///< 8 where A can't be told from B.
  Append,
  MultiGet,
  MultiSet,
  CancelWait,
  Ping,
  QueuePush,
  QueuePop,
  QueueLength,
  ListKeys,
  Barrier,
};

/// From this opcode on, an operation of AOrB is B's alone.
constexpr unsigned char kFirstOpcodeOfBAlone = 9;

/// `fixed`: the only dialect that is spoken, if one was chosen.
[[nodiscard]] Operation operation_of(unsigned char opcode, Speech speech,
                                     std::optional<Dialect> fixed) noexcept;

}  // namespace muster::store
