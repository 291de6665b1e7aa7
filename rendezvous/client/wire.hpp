#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/membership.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

/// The messages of membership as frames of the attendance, both ways, for both sides. What comes
/// from outside is never trusted: whatever breaks one of the limits below is an Error that names
/// the field.
namespace muster::rendezvous {

constexpr std::size_t kMaxName = 512;         ///< Bytes of an id, a host, an address, a secret.
constexpr std::size_t kMaxText = 64 * 1024;   ///< Bytes of a reason, a detail, a traceback.
constexpr std::size_t kMaxLine = 4 * 1024;    ///< Bytes of a line of a worker's stderr.
constexpr std::size_t kMaxStderrLines = 200;  ///< Of one failure.
constexpr std::size_t kMaxAddresses = 256;    ///< In one Hello.
constexpr std::size_t kMaxAddress = 128;      ///< Bytes of one of them.
constexpr std::size_t kMaxSettings = 64;      ///< In one Hello.
constexpr std::size_t kMaxSlots = 4096;       ///< Workers of a node.
constexpr std::size_t kMaxNodes = 65536;      ///< Of a job; more in a list is nonsense.
/// Of a round's name: what follows can be named as well (protocol.md 1).
constexpr std::uint64_t kMaxEpoch = (std::uint64_t{1} << 63U) - 1;
constexpr std::uint64_t kMaxRound = (std::uint64_t{1} << 62U) - 1;
constexpr std::size_t kMaxOthers = 64;  ///< Failures in a verdict beside the first cause.
constexpr std::size_t kMaxPhase = 64;   ///< Bytes of a phase that a worker names.
constexpr std::size_t kMaxPids = 4096;  ///< Of processes that could not be killed.
constexpr std::size_t kMinNonce = 16;   ///< Bytes.
constexpr std::size_t kMaxNonce = 64;   ///< Bytes.
constexpr Duration kMaxDuration = std::chrono::hours(24) * 36525;  ///< 100 years: as good as ever.

// The handshake (proto/muster/v1/rendezvous.proto).

struct Open {
  std::string version;
  std::string nonce;
};
struct Challenge {
  std::string version;
  std::string nonce;
  bool asks_token = false;
  std::string proof;
};
struct Greeting {
  Hello hello;
  std::string proof;
};
struct Parting {
  Farewell farewell;
  std::string proof;
};
struct PartingSeen {};
/// The client goes no further: the server's proof is wrong, or missing.
struct Unproven {
  std::string node;
  std::string reason;
};

/// What a client says in one frame. A Hello goes as a Greeting, never as a bare report.
using ClientFrame = std::variant<Open, Greeting, Parting, Unproven, AgentMessage>;
using ServerFrame = std::variant<Challenge, PartingSeen, ServerMessage>;

/// Appends a frame. Texts that are for people, lists of them, are cut to the limits, so that what
/// this writes can always be read; names are the caller's to keep short.
void encode(const ClientFrame& frame, std::string& out);
void encode(const Open& open, std::string& out);
void encode(const Greeting& greeting, std::string& out);
void encode(const Parting& parting, std::string& out);
void encode(const AgentMessage& message, std::string& out);
void encode(const ServerFrame& frame, std::string& out);
void encode(const Challenge& challenge, std::string& out);
void encode(const PartingSeen& seen, std::string& out);
void encode(const ServerMessage& message, std::string& out);

/// From a frame's body. nullopt: a kind that this version does not know, to be ignored.
[[nodiscard]] Result<std::optional<ClientFrame>> decode_client_frame(std::string_view body);
[[nodiscard]] Result<std::optional<ServerFrame>> decode_server_frame(std::string_view body);

// What the proofs of the handshake sign; each is made with the token.

[[nodiscard]] std::string server_proof(std::string_view token, std::string_view client_nonce,
                                       std::string_view server_nonce);
[[nodiscard]] std::string greeting_proof(std::string_view token, std::string_view server_nonce,
                                         std::string_view client_nonce, const Hello& hello);
[[nodiscard]] std::string parting_proof(std::string_view token, std::string_view server_nonce,
                                        std::string_view client_nonce, const Farewell& farewell);

}  // namespace muster::rendezvous
