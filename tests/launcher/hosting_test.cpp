#include "launcher/hosting.hpp"

#include <catch2/catch.hpp>

namespace muster::launcher {
namespace {

using Addresses = std::vector<std::string>;
const Addresses kLocal{"10.0.0.1", "192.168.1.5", "fd00::1", "fe80::1%eth0"};
const Addresses kWildcard{"::", "0.0.0.0"};

constexpr NodeRank kFirst{0};
constexpr NodeRank kSecond{1};

}  // namespace

TEST_CASE("whoever has the endpoint's address hosts", "[launcher][hosting]") {
  CHECK(hosting_of({.owns_address = true}) == Hosting::AtOnce);
  CHECK(hosting_of({.owns_address = true, .node_rank = kFirst}) == Hosting::AtOnce);
  CHECK(hosting_of({.owns_address = false}) == Hosting::Never);
  CHECK(hosting_of({.owns_address = false, .node_rank = kSecond}) == Hosting::Never);
}

TEST_CASE("a node of another rank that has the address lets the first one try",
          "[launcher][hosting]") {
  CHECK(hosting_of({.owns_address = true, .node_rank = kSecond}) == Hosting::AfterSilence);
}

TEST_CASE("an address that nobody has is served by whom the user names", "[launcher][hosting]") {
  CHECK(hosting_of({.is_host = true}) == Hosting::AfterSilence);
  CHECK(hosting_of({.is_host = true, .node_rank = kSecond}) == Hosting::AfterSilence);
  CHECK(hosting_of({.node_rank = kFirst}) == Hosting::AfterSilence);
}

TEST_CASE("is_host has the last word", "[launcher][hosting]") {
  CHECK(hosting_of({.owns_address = true, .is_host = false}) == Hosting::Never);
  CHECK(hosting_of({.is_host = false, .node_rank = kFirst}) == Hosting::Never);
  CHECK(hosting_of({.owns_address = true, .is_host = true, .node_rank = kSecond}) ==
        Hosting::AtOnce);
}

TEST_CASE("an address is this machine's on any interface, scopes included", "[launcher][hosting]") {
  CHECK(owns({"192.168.1.5"}, kLocal));
  CHECK(owns({"10.9.9.9", "fd00::1"}, kLocal));
  CHECK(owns({"fe80::1%eth0"}, kLocal));
  CHECK_FALSE(owns({"fe80::1%eth1"}, kLocal));
  CHECK_FALSE(owns({"10.0.0.2"}, kLocal));
  CHECK_FALSE(owns({}, kLocal));
  CHECK(owns({"127.0.1.1"}, kLocal));
  CHECK(owns({"::1"}, {}));
}

TEST_CASE("the server binds the endpoint's own addresses", "[launcher][hosting]") {
  CHECK(binding_of("10.0.0.1", {"10.0.0.1"}, kLocal).hosts == Addresses{"10.0.0.1"});
  CHECK(binding_of("h0", {"fd00::1", "10.0.0.1", "10.9.9.9"}, kLocal).hosts ==
        Addresses{"fd00::1", "10.0.0.1"});
}

TEST_CASE("loopback that is asked for stays on the machine", "[launcher][hosting]") {
  CHECK(binding_of("127.0.0.1", {"127.0.0.1"}, kLocal).hosts == Addresses{"127.0.0.1"});
  CHECK(binding_of("LocalHost", {"::1", "127.0.0.1"}, kLocal).hosts ==
        Addresses{"::1", "127.0.0.1"});
  CHECK(binding_of("job.localhost.", {"127.0.0.1"}, kLocal).hosts == Addresses{"127.0.0.1"});
}

TEST_CASE("a machine's name that means loopback to itself is served on all addresses",
          "[launcher][hosting]") {
  CHECK(binding_of("h0", {"127.0.1.1"}, kLocal).hosts == kWildcard);
  CHECK(binding_of("h0", {"127.0.1.1", "10.0.0.1"}, kLocal).hosts == kWildcard);
}

TEST_CASE("an endpoint that is elsewhere is served on all addresses", "[launcher][hosting]") {
  CHECK(binding_of("lb", {"10.9.9.9"}, kLocal).hosts == kWildcard);
  CHECK(binding_of("lb", {}, kLocal).hosts == kWildcard);
}

}  // namespace muster::launcher
