#include "rendezvous/client/handshake.hpp"

#include "base/exit_codes.hpp"
#include "rendezvous/client/frames.hpp"
#include "rendezvous/client/secret.hpp"
#include "rendezvous/client/stranger.hpp"

namespace muster::rendezvous {
std::string server_proof(std::string_view token, std::string_view client_nonce,
                         std::string_view server_nonce) {
  return proof(token, {"muster server", client_nonce, server_nonce});
}

std::string greeting_proof(std::string_view token, std::string_view server_nonce,
                           std::string_view client_nonce, const Hello& hello) {
  return proof(token,
               {"muster agent", server_nonce, client_nonce, hello.incarnation.value, hello.job});
}

std::string parting_proof(std::string_view token, std::string_view server_nonce,
                          std::string_view client_nonce, const Farewell& farewell) {
  return proof(token,
               {"muster farewell", server_nonce, client_nonce, farewell.secret, farewell.job});
}

std::string opening(const std::string& nonce) {
  std::string bytes(kMagic);
  encode(Open{.version = MUSTER_VERSION, .nonce = nonce}, bytes);
  return bytes;
}

Result<std::optional<OpenAnswer>> read_answer(const std::string& endpoint, std::string_view input,
                                              std::size_t& taken) {
  const auto magic = compare_magic(input);
  if (magic == Magic::Foreign) return pass(not_a_server(endpoint, input));
  if (magic == Magic::Partial) return std::nullopt;
  const bool is_other = magic == Magic::OtherVersion;
  const auto version = static_cast<unsigned char>(input[kMagic.size() - 1]);
  const auto nonsense = [&](const Error& cause) {
    return pass(is_other ? other_version(endpoint, version) : speaks_nonsense(endpoint, cause));
  };
  const auto body = first_frame(input.substr(kMagic.size()), kMaxFrameBytes);
  if (!body) return nonsense(body.error());
  if (!*body) return std::nullopt;
  auto frame = decode_server_frame(**body);
  if (!frame) return nonsense(frame.error());
  taken = kMagic.size() + kFrameHeaderBytes + (*body)->size();
  if (*frame) {
    if (auto* const challenge = std::get_if<Challenge>(&**frame); challenge && !is_other) {
      return OpenAnswer(std::move(*challenge));
    }
    if (auto* const message = std::get_if<ServerMessage>(&**frame)) {
      if (auto* const refusal = std::get_if<Refusal>(message)) {
        return OpenAnswer(std::move(*refusal));
      }
    }
  }
  return nonsense({Errc::InvalidArgument, "it does not begin with a challenge"});
}

std::optional<Refusal> judge(const std::string& endpoint, const Challenge& challenge,
                             const std::optional<std::string>& token,
                             std::string_view client_nonce) {
  const auto refused = [&](const std::string& why) {
    return Refusal{endpoint + " " + why + ": " + std::string(kSameToken), kUsage};
  };
  if (!token) {
    if (!challenge.asks_token) return std::nullopt;
    return refused("asks for a token and this node was given none");
  }
  if (!challenge.asks_token) {
    return refused("has no token and this node was given one, so it may not be the server meant");
  }
  if (are_same_secret(challenge.proof, server_proof(*token, client_nonce, challenge.nonce))) {
    return std::nullopt;
  }
  return refused("has another token than this node");
}

}  // namespace muster::rendezvous
