#pragma once

#include "rendezvous/store_client/connection.hpp"
#include "rendezvous/store_client/request.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// A request and its reply, on a connection whose dialect has the operation. What no store answers
/// is Garbage.
namespace muster::store_client {

/// A number, of any sign.
[[nodiscard]] Attempt<std::int64_t> ask_number(Connection& connection, const Request& request,
                                               TimePoint deadline);

/// A number that counts something.
[[nodiscard]] Attempt<std::int64_t> ask_count(Connection& connection, const Request& request,
                                              TimePoint deadline);

/// CHECK: whether all keys are there.
[[nodiscard]] Attempt<bool> ask_readiness(Connection& connection, const Request& request,
                                          TimePoint deadline);

/// WAIT, BARRIER.
[[nodiscard]] Attempt<void> ask_release(Connection& connection, const Request& request,
                                        TimePoint deadline);

/// GET, COMPARE_SET.
[[nodiscard]] Attempt<std::string> ask_value(Connection& connection, const Request& request,
                                             TimePoint deadline);

/// MULTI_GET: `count` values.
[[nodiscard]] Attempt<std::vector<std::string>> ask_values(Connection& connection,
                                                           const Request& request,
                                                           std::size_t count, TimePoint deadline);

/// QUEUE_POP: nullopt if the queue was empty.
[[nodiscard]] Attempt<std::optional<std::string>> ask_item(Connection& connection,
                                                           const Request& request,
                                                           TimePoint deadline);

/// LIST_KEYS: raw keys, in no order.
[[nodiscard]] Attempt<std::vector<std::string>> ask_keys(Connection& connection,
                                                         TimePoint deadline);

/// PING, in one piece with a request that is not answered itself: the echo says that this was
/// executed.
[[nodiscard]] Attempt<void> ask_echo(Connection& connection, std::string_view unanswered,
                                     TimePoint deadline);

}  // namespace muster::store_client
