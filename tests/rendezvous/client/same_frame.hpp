#pragma once

#include "base/membership.hpp"
#include "rendezvous/client/wire.hpp"

#include <tuple>

// Equality of everything that travels. Each binding names all fields of its struct: one that is
// added does not compile until it is compared here, and so is sent.

namespace muster {

inline auto fields(const WorkerFailure& x) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = x;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
}
inline auto fields(const Victim& x) {
  const auto& [a, b] = x;
  return std::tie(a, b);
}
inline auto fields(const Verdict& x) {
  const auto& [a, b, c, d, e, f, g, h, i, j] = x;
  return std::tie(a, b, c, d, e, f, g, h, i, j);
}
inline bool operator==(const WorkerFailure& x, const WorkerFailure& y) {
  return fields(x) == fields(y);
}
inline bool operator==(const Victim& x, const Victim& y) { return fields(x) == fields(y); }
inline bool operator==(const Verdict& x, const Verdict& y) { return fields(x) == fields(y); }

inline auto fields(const Held& x) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v] = x;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v);
}
inline bool operator==(const Held& x, const Held& y) { return fields(x) == fields(y); }
inline auto fields(const Hello& x) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q] = x;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q);
}
inline auto fields(const Ping& x) {
  const auto& [a, b, c] = x;
  return std::tie(a, b, c);
}
inline auto fields(const Acknowledged& x) { return std::tie(x.round); }
inline auto fields(const Unreachable& x) {
  const auto& [a, b] = x;
  return std::tie(a, b);
}
inline auto fields(const Started& x) { return std::tie(x.round); }
inline auto fields(const Failed& x) {
  const auto& [a, b, c] = x;
  return std::tie(a, b, c);
}
inline auto fields(const Succeeded& x) { return std::tie(x.round); }
inline auto fields(const Stopped& x) { return std::tie(x.round); }
inline auto fields(const Empty& x) {
  const auto& [a, b, c] = x;
  return std::tie(a, b, c);
}
inline auto fields(const Stuck& x) {
  const auto& [a, b] = x;
  return std::tie(a, b);
}
inline auto fields(const Leaving& x) {
  const auto& [a, b] = x;
  return std::tie(a, b);
}
inline auto fields(const VerdictSeen&) { return std::tuple<>(); }
inline auto fields(const Notice& x) {
  const auto& [a, b] = x;
  return std::tie(a, b);
}
inline auto fields(const Saving& x) {
  const auto& [a, b] = x;
  return std::tie(a, b);
}
inline auto fields(const StoreRefused& x) {
  const auto& [a, b] = x;
  return std::tie(a, b);
}
inline auto fields(const WorkerProgress& x) {
  const auto& [a, b, c, d, e] = x;
  return std::tie(a, b, c, d, e);
}
inline bool operator==(const WorkerProgress& x, const WorkerProgress& y) {
  return fields(x) == fields(y);
}
inline auto fields(const Progress& x) {
  const auto& [a, b] = x;
  return std::tie(a, b);
}
inline auto fields(const Farewell& x) {
  const auto& [a, b, c, d, e] = x;
  return std::tie(a, b, c, d, e);
}
inline auto fields(const Assignment& x) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s] = x;
  return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s);
}
inline auto fields(const Stop& x) {
  const auto& [a, b, c, d, e, f] = x;
  return std::tie(a, b, c, d, e, f);
}
inline auto fields(const Prepare& x) {
  const auto& [a, b, c] = x;
  return std::tie(a, b, c);
}
inline auto fields(const MasterUp& x) { return std::tie(x.round); }
inline auto fields(const Keep& x) {
  const auto& [a, b, c] = x;
  return std::tie(a, b, c);
}
inline auto fields(const Waiting& x) {
  const auto& [a, b] = x;
  return std::tie(a, b);
}
inline auto fields(const Pong& x) {
  const auto& [a, b] = x;
  return std::tie(a, b);
}
inline auto fields(const Welcome& x) { return std::tie(x.version, x.embedded); }
inline auto fields(const Refusal& x) {
  const auto& [a, b] = x;
  return std::tie(a, b);
}
inline auto fields(const Dismissal&) { return std::tuple<>(); }

inline bool operator==(const Hello& x, const Hello& y) { return fields(x) == fields(y); }
inline bool operator==(const Farewell& x, const Farewell& y) { return fields(x) == fields(y); }

namespace rendezvous {

inline auto fields(const Open& x) {
  const auto& [a, b] = x;
  return std::tie(a, b);
}
inline auto fields(const Challenge& x) {
  const auto& [a, b, c, d] = x;
  return std::tie(a, b, c, d);
}
inline auto fields(const Greeting& x) {
  const auto& [a, b] = x;
  return std::tie(a, b);
}
inline auto fields(const Parting& x) {
  const auto& [a, b] = x;
  return std::tie(a, b);
}
inline auto fields(const Unproven& x) {
  const auto& [a, b] = x;
  return std::tie(a, b);
}
inline auto fields(const PartingSeen&) { return std::tuple<>(); }

template <class... Kinds>
bool are_same(const std::variant<Kinds...>& x, const std::variant<Kinds...>& y);

template <class Kind>
bool are_same(const Kind& x, const Kind& y) {
  return fields(x) == fields(y);
}
inline bool are_same(const Directive& x, const Directive& y) {
  const auto& [ping, right, order] = x;
  return ping == y.ping && right == y.right && are_same(order, y.order);
}
template <class... Kinds>
bool are_same(const std::variant<Kinds...>& x, const std::variant<Kinds...>& y) {
  return x.index() == y.index() && std::visit(
                                       [&](const auto& one) {
                                         using Kind = std::decay_t<decltype(one)>;
                                         return are_same(one, std::get<Kind>(y));
                                       },
                                       x);
}

}  // namespace rendezvous
}  // namespace muster
