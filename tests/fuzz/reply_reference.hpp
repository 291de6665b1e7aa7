#pragma once

#include "rendezvous/store_client/dialect.hpp"
#include "tests/fuzz/scripted_stream.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// What the client may ask for, as the inputs of fuzz_store_client number it.
enum class Act : std::uint8_t {
  Connect,
  SetAndFlush,
  MultiSetAndFlush,
  AppendAndFlush,
  Get,
  MultiGet,
  Wait,
  Check,
  Add,
  CompareSet,
  Delete,
  CountKeys,
  ListKeys,
  QueuePush,
  QueuePop,
  QueueTryPop,
  QueueLength,
  Barrier,
  BarrierOfView,
  Ping,
};
constexpr std::size_t kActs = 20;
constexpr std::size_t kMultiGetKeys = 2;
constexpr std::int64_t kBarrierSize = 2;

/// What a call must bring, in the plainest words that the protocol allows: all that the server
/// sends lies before it.
struct Expected {
  std::string text;  ///< `ok`, `number=5`, `value=2:ab ...`, or `error=<Errc>`.
  bool stays_connected;
};
[[nodiscard]] Expected expected_of(Act act, muster::store_client::ServerDialect dialect,
                                   const ScriptedReplies& replies);

// How results are written.
[[nodiscard]] std::string number_text(std::int64_t number);
[[nodiscard]] std::string value_text(std::string_view value);
[[nodiscard]] std::string error_text(int code);
