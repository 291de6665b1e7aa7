#pragma once

#include "rendezvous/client/frames.hpp"
#include "rendezvous/client/secret.hpp"
#include "rendezvous/client/wire.hpp"
#include "tests/rendezvous/client/line_probe.hpp"
#include "tests/rendezvous/server/server_host.hpp"
#include "tests/rendezvous/store/store_host.hpp"

#include <catch2/catch.hpp>

/// Agents as a server meets them: by the client's own code, and by bytes.

/// Of a job of `nodes` nodes.
inline muster::Hello hello_of(const std::string& node, std::uint32_t nodes = 1) {
  muster::Hello hello;
  hello.job = "job";
  hello.incarnation = muster::rendezvous::incarnation_of("secret of " + node);
  hello.machine = "machine of " + node;
  hello.name = node;
  hello.slots = 2;
  hello.store = {"127.0.0.1", 4000};
  hello.addresses = {"127.0.0.1"};
  hello.settings.min_nodes = nodes;
  hello.settings.max_nodes = nodes;
  hello.ping = 1;
  return hello;
}

/// Dials, and says Hello.
inline std::unique_ptr<LineProbe> greeted(LineBench& bench, const ServerHost& host,
                                          const muster::Hello& hello,
                                          std::optional<std::string> token = {}) {
  auto probe = bench.dial({.server = host.endpoint(), .token = std::move(token)});
  REQUIRE(bench.until([&] { return probe->facts || probe->error; }));
  REQUIRE(probe->facts);
  probe->line->send(muster::Report(hello));
  return probe;
}

template <class Kind>
const Kind* order_of(const LineProbe& probe) {
  for (const auto& each : probe.messages) {
    const auto* const directive = std::get_if<muster::Directive>(&each);
    if (directive == nullptr) continue;
    if (const auto* const order = std::get_if<Kind>(&directive->order)) return order;
  }
  return nullptr;
}

inline std::string framed(const muster::rendezvous::ClientFrame& frame) {
  std::string bytes;
  muster::rendezvous::encode(frame, bytes);
  return bytes;
}

/// What a client says first.
inline std::string opened() {
  return std::string(muster::rendezvous::kMagic) +
         framed(muster::rendezvous::Open{"", std::string(32, 'n')});
}

/// Until the server has closed.
inline std::string everything_from(RawClient& client) {
  std::string got;
  for (;;) {
    const auto piece = client.receive(1);
    if (piece.empty()) return got;
    got += piece;
  }
}
