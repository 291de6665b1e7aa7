// store_server [--port PORT]: hosts one store on 127.0.0.1, for tests in other languages and
// benchmarks.
//
// Prints its port once it listens, then serves until its standard input ends, so that it never
// outlives whoever started it. Port 0, the default, is any free one.

#include "base/endpoint.hpp"
#include "base/log/log.hpp"
#include "base/posix/fd.hpp"
#include "base/posix/socket.hpp"
#include "rendezvous/store/server.hpp"

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

namespace {

namespace asio = boost::asio;

constexpr int kUsage = 2;

/// Reads and drops standard input; when it ends the loop has nothing left to do.
class UntilStdinEnds {
 public:
  UntilStdinEnds(asio::io_context& loop, muster::posix::Fd input)
      : loop_(loop), input_(loop, input.release()) {
    read();
  }

 private:
  void read() {
    input_.async_read_some(asio::buffer(ignored_),
                           [this](const boost::system::error_code& error, std::size_t) {
                             if (error) {
                               loop_.stop();
                             } else {
                               read();
                             }
                           });
  }

  asio::io_context& loop_;
  asio::posix::stream_descriptor input_;
  std::array<char, 64> ignored_{};
};

muster::Result<void> serve(std::uint16_t port, muster::Logger& logger) {
  auto listener = muster::posix::bind_tcp({.host = "127.0.0.1", .port = port});
  if (!listener) return muster::pass(listener.error());
  auto input = muster::posix::duplicate(0);
  if (!input) return muster::pass(input.error());

  asio::io_context loop(1);
  const auto server =
      muster::store::Server::start(loop.get_executor(), std::move(*listener), {}, logger);
  if (!server) return muster::pass(server.error());
  std::printf("%u\n", unsigned{(*server)->endpoint().port});
  std::fflush(stdout);

  const UntilStdinEnds until(loop, std::move(*input));
  loop.run();
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  std::uint16_t port = 0;
  if (argc == 3 && std::string_view(argv[1]) == "--port") {
    const auto endpoint = muster::parse_endpoint(std::string("127.0.0.1:") + argv[2], 0);
    if (!endpoint) {
      std::fprintf(stderr, "store_server: --port: %s\n", endpoint.error().message.c_str());
      return kUsage;
    }
    port = endpoint->port;
  } else if (argc != 1) {
    std::fputs("usage: store_server [--port PORT]\n", stderr);
    return kUsage;
  }

  const auto logger = muster::make_stderr_logger(spdlog::level::warn);
  if (const auto served = serve(port, *logger); !served) {
    std::fprintf(stderr, "store_server: %s\n", served.error().message.c_str());
    return 1;
  }
  return 0;
}
