#include "rendezvous/client/stranger.hpp"

#include "base/text.hpp"
#include "rendezvous/client/frames.hpp"

namespace muster::rendezvous {
namespace {

constexpr std::size_t kShownBytes = 40;

/// The first line of what came: a banner can be read, a binary protocol guessed.
std::string shown(std::string_view bytes) {
  const auto line = bytes.substr(0, bytes.find_first_of("\r\n"));
  return printable(line.substr(0, kShownBytes)) + (line.size() > kShownBytes ? "..." : "");
}

constexpr std::string_view kLookElsewhere =
    "; check --rdzv-endpoint, or end the other service and try again";

}  // namespace

Error not_a_server(const std::string& endpoint, std::string_view first) {
  std::string kind = "is no rendezvous server of muster";
  if (first.starts_with("HTTP/")) kind += " but an HTTP server";
  if (first.starts_with("SSH-")) kind += " but an SSH server";
  return {Errc::InvalidArgument, endpoint + " answers, but " + kind + ": it sent '" + shown(first) +
                                     "'" + std::string(kLookElsewhere)};
}

Error hung_up(const std::string& endpoint) {
  return {Errc::Unavailable,
          endpoint +
              " accepts connections, but closes them without a word: perhaps another "
              "service, such as the c10d store of a torchrun or of a worker" +
              std::string(kLookElsewhere)};
}

Error said_nothing(const std::string& endpoint) {
  return {Errc::Unavailable,
          endpoint +
              " accepts connections, but says nothing: perhaps another service, such as the "
              "c10d store of a torchrun or of a worker" +
              std::string(kLookElsewhere)};
}

Error speaks_nonsense(const std::string& endpoint, const Error& cause) {
  return {Errc::InvalidArgument, endpoint + " does not keep to the protocol: " + cause.message};
}

Error other_version(const std::string& endpoint, unsigned version) {
  return {Errc::InvalidArgument, endpoint + " speaks version " + std::to_string(version) +
                                     " of the rendezvous protocol, this muster version " +
                                     std::to_string(static_cast<unsigned char>(kMagic.back())) +
                                     ": run the same release of muster on all nodes"};
}

}  // namespace muster::rendezvous
