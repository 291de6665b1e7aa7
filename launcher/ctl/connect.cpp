#include "launcher/ctl/connect.hpp"

#include "base/posix/tcp_stream.hpp"

#include <algorithm>
#include <chrono>
#include <grpc/support/log.h>
#include <grpcpp/channel.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/support/channel_arguments.h>

namespace muster::ctl {
namespace {

/// A server that has said nothing for the first is asked, and given up after the second. The
/// server's own limit on such questions is below that.
constexpr int kSilence = 15'000;  // Milliseconds.
constexpr int kSilencePatience = 5'000;

/// Of a reply: a job of 20,000 nodes with long names, which is shown whole, has some 20 MiB. A
/// longer one is RESOURCE_EXHAUSTED; gRPC's own limit is 4 MiB.
constexpr int kLongestReply = 256 * 1024 * 1024;

}  // namespace

Result<std::shared_ptr<grpc::Channel>> connect(const Endpoint& server, Duration patience) {
  const auto addresses = posix::resolve(server);
  if (!addresses) return pass(addresses.error());
  // An address that swallows what is sent to it must not take all the time.
  const auto patience_for_each = patience / std::max<std::size_t>(addresses->size(), 1);
  std::string failures;
  for (const auto& address : *addresses) {
    const auto target = to_string(posix::to_endpoint(address));
    auto stream =
        posix::TcpStream::connect(address, std::chrono::steady_clock::now() + patience_for_each);
    if (!stream) {
      failures +=
          (failures.empty() ? "connect to " : "; to ") + target + ": " + stream.error().message;
      continue;
    }
    gpr_set_log_function([](gpr_log_func_args*) {});  // What it would say is in each call's status.
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kSilence);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kSilencePatience);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetMaxReceiveMessageSize(kLongestReply);
    return grpc::CreateCustomInsecureChannelFromFd(target, stream->release().release(), arguments);
  }
  return fail(Errc::Unavailable,
              failures.empty() ? "'" + server.host + "' has no address" : failures);
}

}  // namespace muster::ctl
