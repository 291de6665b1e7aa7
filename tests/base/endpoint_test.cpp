#include "base/endpoint.hpp"

#include <catch2/catch.hpp>

using muster::Endpoint;
using muster::parse_endpoint;

TEST_CASE("an endpoint is a host with an optional port", "[base][endpoint]") {
  CHECK(parse_endpoint("node7", 29400).value() == Endpoint{"node7", 29400});
  CHECK(parse_endpoint("node7:1", 29400).value() == Endpoint{"node7", 1});
  CHECK(parse_endpoint("10.0.0.1:0", 29400).value() == Endpoint{"10.0.0.1", 0});
}

TEST_CASE("an IPv6 address is a host with or without brackets", "[base][endpoint]") {
  CHECK(parse_endpoint("[::1]:29500", 1).value() == Endpoint{"::1", 29500});
  CHECK(parse_endpoint("[::1]", 1).value() == Endpoint{"::1", 1});
  CHECK(parse_endpoint("fe80::1%eth0", 1).value() == Endpoint{"fe80::1%eth0", 1});
  CHECK(to_string(Endpoint{"::1", 29500}) == "[::1]:29500");
}

TEST_CASE("an endpoint that makes no sense is refused with the part that is wrong",
          "[base][endpoint]") {
  for (const char* text :
       {"host:65536", "host:", "host:-1", "host:1x", ":1", "", "[::1", "[::1]x", "[]:1"}) {
    INFO(text);
    const auto parsed = parse_endpoint(text, 1);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().message.find(text) != std::string::npos);
  }
}
