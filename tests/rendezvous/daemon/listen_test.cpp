#include "rendezvous/daemon/listen.hpp"

#include "base/posix/socket.hpp"

#include <vector>

#include <catch2/catch.hpp>

using namespace muster;
using namespace muster::rendezvous;

namespace {

constexpr const char* kNobodys = "192.0.2.1";  // For documentation: no machine has it.

Endpoint endpoint_of(const posix::Fd& socket) {
  return posix::to_endpoint(posix::local_address(socket.get()));
}

}  // namespace

TEST_CASE("a port that is taken on one address of a name is not sought on the next",
          "[daemon][listen]") {
  const std::vector<Endpoint> free{{"127.0.0.1", 0}};
  const auto other = listen_at_first(free);
  REQUIRE(other);
  const auto port = endpoint_of(*other).port;
  const std::vector<Endpoint> both{{"127.0.0.1", port}, {"127.0.0.2", port}};
  const auto taken = listen_at_first(both);
  REQUIRE_FALSE(taken);
  CHECK(taken.error().code == Errc::InvalidArgument);
  CHECK(taken.error().message.find("127.0.0.1:" + std::to_string(port)) != std::string::npos);
}

TEST_CASE("an address of another machine is passed over", "[daemon][listen]") {
  const std::vector<Endpoint> both{{kNobodys, 0}, {"127.0.0.2", 0}};
  const auto listener = listen_at_first(both);
  REQUIRE(listener);
  CHECK(endpoint_of(*listener).host == "127.0.0.2");
  const std::vector<Endpoint> none{{kNobodys, 0}};
  CHECK(listen_at_first(none).error().message.find(kNobodys) != std::string::npos);
}
