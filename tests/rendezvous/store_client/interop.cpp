// The client against a store of PyTorch's own, in another process: interop_test.py starts that,
// names it in MUSTER_TEST_STORE (host:port), MUSTER_TEST_DIALECT (A to G) and MUSTER_TEST_QUEUES
// (0, 1), and plays the Python part.

#include "tests/rendezvous/store_client/every_operation.hpp"

#include <cstdlib>
#include <string>

#include <catch2/catch.hpp>

using namespace std::chrono_literals;
using namespace muster::store_client;

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  INFO(name);
  REQUIRE(value != nullptr);
  return value;
}

ServerUnderTest server_under_test() {
  const auto endpoint = muster::parse_endpoint(variable("MUSTER_TEST_STORE"), 0);
  REQUIRE(endpoint);
  const char letter = variable("MUSTER_TEST_DIALECT").at(0);
  return {*endpoint, static_cast<Dialect>(letter - 'A'), variable("MUSTER_TEST_QUEUES") == "1"};
}

}  // namespace

TEST_CASE("a C++ program and a Python process meet on the same keys", "[store_client][interop]") {
  const auto server = server_under_test();
  auto store = StoreClient::connect(server.endpoint, {.timeout = 20s, .call_timeout = 20s});
  REQUIRE(store);
  CHECK(store->get("from python").value() == std::string("\0py\xFF", 4));
  REQUIRE(store->set("from c++", std::string("\0c++\xFF", 5)));
  CHECK(store->add("counter", 40).value() == 40);
  REQUIRE(store->under("view").set("key", "seen"));
  REQUIRE(store->set("go on", ""));
  CHECK(store->get("python agrees").value() == "42");
}

TEST_CASE("every operation works against PyTorch's server, or is refused",
          "[store_client][interop]") {
  use_every_operation(server_under_test());
}

TEST_CASE("speaking the wrong dialect fails in time, and does the server no harm",
          "[store_client][interop]") {
  const auto server = server_under_test();
  for (const auto wrong : {Dialect::A, Dialect::B, Dialect::C, Dialect::D}) {
    const bool understood =
        server.dialect == Dialect::A ? wrong == Dialect::A : wrong >= Dialect::C;
    if (understood) continue;
    const auto started = std::chrono::steady_clock::now();
    const auto store = StoreClient::connect(server.endpoint, {.timeout = 1s, .dialect = wrong});
    INFO(to_string(wrong));
    CHECK_FALSE(store);
    CHECK(std::chrono::steady_clock::now() - started < 10s);
  }
  auto store = StoreClient::connect(server.endpoint, {.timeout = 20s, .call_timeout = 20s});
  REQUIRE(store);
  CHECK(store->num_keys());
}
