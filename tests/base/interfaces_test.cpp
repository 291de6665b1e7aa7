#include "base/posix/interfaces.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

using namespace muster;

TEST_CASE("loopback is an interface's address, but none by which others could come",
          "[base][posix]") {
  CHECK(posix::interface_of("127.0.0.1") == "lo");
  const auto addresses = posix::local_addresses().value();
  CHECK(std::count(addresses.begin(), addresses.end(), "127.0.0.1") == 0);
  CHECK(std::count(addresses.begin(), addresses.end(), "::1") == 0);
}

TEST_CASE("each address of this machine is found on an interface, and is listed once, IPv4 first",
          "[base][posix]") {
  const auto addresses = posix::local_addresses().value();
  for (const auto& address : addresses) {
    CAPTURE(address);
    const auto name = posix::interface_of(address);
    CHECK_FALSE(name.empty());
    CHECK(name != "lo");
    CHECK(std::count(addresses.begin(), addresses.end(), address) == 1);
    // A link-local address means nothing without its scope.
    if (address.starts_with("fe80:")) CHECK(address.ends_with("%" + name));
  }
  CHECK(std::is_partitioned(addresses.begin(), addresses.end(), [](const std::string& address) {
    return address.find(':') == std::string::npos;
  }));
}

TEST_CASE("an address that is not of this machine has no interface", "[base][posix]") {
  CHECK(posix::interface_of("203.0.113.77").empty());
  CHECK(posix::interface_of("no address").empty());
  CHECK(posix::interface_of("").empty());
}
