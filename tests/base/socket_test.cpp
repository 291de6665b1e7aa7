#include "base/posix/socket.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>

namespace posix = muster::posix;

TEST_CASE("a bound port is reserved, and its holder is named to whoever wants it",
          "[base][socket]") {
  const auto first = posix::bind_tcp({"127.0.0.1", 0});
  REQUIRE(first);
  REQUIRE(posix::listen_on(first->get()));
  const auto endpoint = posix::to_endpoint(posix::local_address(first->get()));
  CHECK(endpoint.host == "127.0.0.1");
  CHECK(endpoint.port != 0);

  const auto second = posix::bind_tcp(endpoint);
  REQUIRE_FALSE(second);
  CHECK(second.error().code == muster::Errc::InvalidArgument);
  CHECK(second.error().message.find(std::to_string(::getpid()) + " (") != std::string::npos);
}

TEST_CASE("only numeric addresses are addresses", "[base][socket]") {
  CHECK(posix::numeric_address({"localhost", 1}).error().code == muster::Errc::NotFound);
  CHECK(posix::to_endpoint(*posix::numeric_address({"::ffff:10.0.0.1", 5})) ==
        muster::Endpoint{"10.0.0.1", 5});
}
