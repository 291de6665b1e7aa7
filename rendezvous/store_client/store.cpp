#include "rendezvous/store_client/store.hpp"

#include "rendezvous/store_client/exchanges.hpp"
#include "rendezvous/store_client/session.hpp"

#include <algorithm>
#include <array>

namespace muster::store_client {
namespace {

std::uint64_t bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }

}  // namespace

Store::Store(Session& session, std::string prefix, std::size_t root)
    : session_(&session), prefix_(std::move(prefix)), root_(root) {}

Store Store::under(std::string_view prefix) const {
  return Store(*session_, prefix_ + std::string(prefix) + "/", root_);
}

ServerDialect Store::dialect() const { return session_->dialect(); }
const Endpoint& Store::endpoint() const { return session_->endpoint(); }

Call Store::call(std::string_view verb, Timeout timeout) const {
  return Call({.verb = verb, .has_key = false}, timeout.value_or(session_->options().call_timeout));
}

Call Store::call(std::string_view verb, std::string_view key, Timeout timeout) const {
  auto made = call(verb, timeout);
  made.act = {.verb = verb, .prefix = std::string_view(prefix_).substr(root_), .key = key};
  return made;
}

Call Store::call(std::string_view verb, std::span<const std::string> keys, Timeout timeout) const {
  if (keys.empty()) return call(verb, timeout);
  auto made = call(verb, keys.front(), timeout);
  made.act.others = keys.size() - 1;
  return made;
}

Result<void> Store::check_limits(const Call& call, std::string_view key,
                                 std::string_view value) const {
  const auto too_long = [&](std::string_view what, std::size_t size, std::size_t limit) {
    return pass(session_->error(call, Errc::InvalidArgument,
                                std::string(what) + " of " + std::to_string(size) +
                                    " bytes is longer than " + std::to_string(limit) +
                                    ", the most that a store takes"));
  };
  if (prefix_.size() + key.size() > kMaxKeyBytes)
    return too_long("a key", prefix_.size() + key.size(), kMaxKeyBytes);
  if (value.size() > kMaxValueBytes) return too_long("a value", value.size(), kMaxValueBytes);
  return {};
}

Result<void> Store::check_limits(const Call& call, std::span<const std::string> keys) const {
  if (auto fits = check_count(call, keys.size()); !fits) return fits;
  for (const auto& key : keys) {
    if (auto fits = check_limits(call, key); !fits) return fits;
  }
  return {};
}

Result<void> Store::check_count(const Call& call, std::size_t count) const {
  if (count <= kMaxKeys) return {};
  return pass(session_->error(call, Errc::InvalidArgument,
                              std::to_string(count) + " keys are more than " +
                                  std::to_string(kMaxKeys) +
                                  ", the most that a store takes at once"));
}

Result<void> Store::set(std::string_view key, std::string_view value, Timeout timeout) {
  auto call = this->call("set", key, timeout);
  return set(call, key, value);
}

Result<void> Store::set(Call& call, std::string_view key, std::string_view value) {
  if (auto fits = check_limits(call, key, value); !fits) return fits;
  auto sent = session_->run(call, Operation::Set, Repeat::Safe, [&](Connection& connection) {
    const auto request = Request(connection.opcode(Operation::Set)).key(prefix_, key).bytes(value);
    return connection.send(request.view(), call.deadline);
  });
  if (sent) session_->note_write(call);
  return sent;
}

Result<void> Store::multi_set(std::span<const std::pair<std::string, std::string>> entries,
                              Timeout timeout) {
  auto call = entries.empty() ? this->call("set no key", timeout)
                              : this->call("set", entries.front().first, timeout);
  if (!entries.empty()) call.act.others = entries.size() - 1;
  if (auto fits = check_count(call, entries.size()); !fits) return fits;
  for (const auto& [key, value] : entries) {
    if (auto fits = check_limits(call, key, value); !fits) return fits;
  }
  auto sent = session_->run(call, Operation::MultiSet, Repeat::Safe, [&](Connection& connection) {
    Request request(connection.opcode(Operation::MultiSet));
    request.number(entries.size());
    for (const auto& [key, value] : entries) request.key(prefix_, key).bytes(value);
    return connection.send(request.view(), call.deadline);
  });
  if (sent) session_->note_write(call);
  return sent;
}

Result<void> Store::append(std::string_view key, std::string_view bytes, Timeout timeout) {
  auto call = this->call("append to", key, timeout);
  if (auto fits = check_limits(call, key, bytes); !fits) return fits;
  auto sent = session_->run(call, Operation::Append, Repeat::Unsafe, [&](Connection& connection) {
    const auto request =
        Request(connection.opcode(Operation::Append)).key(prefix_, key).bytes(bytes);
    return connection.send(request.view(), call.deadline);
  });
  if (sent) session_->note_write(call);
  return sent;
}

Result<void> Store::flush(Timeout timeout) {
  auto call = this->call("flush", timeout);
  return session_->flush(call);
}

Result<std::string> Store::get(std::string_view key, Timeout timeout) {
  const std::array keys{std::string(key)};
  auto call = this->call("get", keys, timeout);
  // The server's GET does not wait, and PyTorch's older ones close the connection if the key is
  // missing.
  if (auto there = wait(call, keys); !there) return pass(there.error());
  return session_->run(call, Operation::Get, Repeat::Safe, [&](Connection& connection) {
    const auto request = Request(connection.opcode(Operation::Get)).key(prefix_, key);
    return ask_value(connection, request, call.deadline);
  });
}

Result<std::vector<std::string>> Store::multi_get(std::span<const std::string> keys,
                                                  Timeout timeout) {
  auto call = this->call("get", keys, timeout);
  if (auto able = session_->make_ready(call, Operation::MultiGet); !able) return pass(able.error());
  if (auto there = wait(call, keys); !there) return pass(there.error());
  return session_->run(call, Operation::MultiGet, Repeat::Safe, [&](Connection& connection) {
    const auto request = Request(connection.opcode(Operation::MultiGet)).keys(prefix_, keys);
    return ask_values(connection, request, keys.size(), call.deadline);
  });
}

Result<void> Store::wait(std::string_view key, Timeout timeout) {
  const std::array keys{std::string(key)};
  return wait(keys, timeout);
}

Result<void> Store::wait(std::span<const std::string> keys, Timeout timeout) {
  auto call = this->call("wait for", keys, timeout);
  return wait(call, keys);
}

Result<void> Store::wait(Call& call, std::span<const std::string> keys) {
  if (auto fits = check_limits(call, keys); !fits) return fits;
  return session_->run(call, Operation::Wait, Repeat::Safe, [&](Connection& connection) {
    const auto request = Request(connection.opcode(Operation::Wait)).keys(prefix_, keys);
    return ask_release(connection, request, call.deadline);
  });
}

Result<bool> Store::check(std::string_view key, Timeout timeout) {
  const std::array keys{std::string(key)};
  return check(keys, timeout);
}

Result<bool> Store::check(std::span<const std::string> keys, Timeout timeout) {
  auto call = this->call("check", keys, timeout);
  if (auto fits = check_limits(call, keys); !fits) return pass(fits.error());
  return session_->run(call, Operation::Check, Repeat::Safe, [&](Connection& connection) {
    const auto request = Request(connection.opcode(Operation::Check)).keys(prefix_, keys);
    return ask_readiness(connection, request, call.deadline);
  });
}

Result<std::int64_t> Store::add(std::string_view key, std::int64_t delta, Timeout timeout) {
  auto call = this->call("add to", key, timeout);
  return add(call, key, delta);
}

Result<std::int64_t> Store::add(Call& call, std::string_view key, std::int64_t delta) {
  if (auto fits = check_limits(call, key); !fits) return pass(fits.error());
  return session_->run(call, Operation::Add, Repeat::Unsafe, [&](Connection& connection) {
    const auto request =
        Request(connection.opcode(Operation::Add)).key(prefix_, key).number(bits(delta));
    return ask_number(connection, request, call.deadline);
  });
}

Result<std::string> Store::compare_set(std::string_view key, std::string_view expected,
                                       std::string_view desired, Timeout timeout) {
  auto call = this->call("compare and set", key, timeout);
  for (const auto value : {expected, desired}) {
    if (auto fits = check_limits(call, key, value); !fits) return pass(fits.error());
  }
  return session_->run(call, Operation::CompareSet, Repeat::Unsafe, [&](Connection& connection) {
    const auto request = Request(connection.opcode(Operation::CompareSet))
                             .key(prefix_, key)
                             .bytes(expected)
                             .bytes(desired);
    return ask_value(connection, request, call.deadline);
  });
}

Result<bool> Store::delete_key(std::string_view key, Timeout timeout) {
  auto call = this->call("delete", key, timeout);
  if (auto fits = check_limits(call, key); !fits) return pass(fits.error());
  const auto deleted =
      session_->run(call, Operation::DeleteKey, Repeat::Unsafe, [&](Connection& connection) {
        const auto request = Request(connection.opcode(Operation::DeleteKey)).key(prefix_, key);
        return ask_count(connection, request, call.deadline);
      });
  return deleted.map([](std::int64_t count) { return count > 0; });
}

Result<std::int64_t> Store::num_keys(Timeout timeout) {
  auto call = this->call("count keys", timeout);
  return session_->run(call, Operation::NumKeys, Repeat::Safe, [&](Connection& connection) {
    return ask_count(connection, Request(connection.opcode(Operation::NumKeys)), call.deadline);
  });
}

Result<std::vector<std::string>> Store::list_keys(Timeout timeout) {
  auto call = this->call("list keys", timeout);
  auto keys = session_->run(call, Operation::ListKeys, Repeat::Safe, [&](Connection& connection) {
    return ask_keys(connection, call.deadline);
  });
  if (!keys) return keys;
  std::erase_if(*keys, [&](const std::string& key) { return !key.starts_with(prefix_); });
  for (auto& key : *keys) key.erase(0, prefix_.size());
  std::ranges::sort(*keys);
  return keys;
}

Result<void> Store::queue_push(std::string_view queue, std::string_view item, Timeout timeout) {
  auto call = this->call("push to queue", queue, timeout);
  if (auto fits = check_limits(call, queue, item); !fits) return fits;
  return session_->run(call, Operation::QueuePush, Repeat::Unsafe, [&](Connection& connection) {
    const auto request =
        Request(connection.opcode(Operation::QueuePush)).key(prefix_, queue).bytes(item);
    return ask_echo(connection, request.view(), call.deadline);
  });
}

Result<std::string> Store::queue_pop(std::string_view queue, Timeout timeout) {
  const std::array keys{std::string(queue)};
  auto call = this->call("pop from queue", keys, timeout);
  for (;;) {
    // Before the wait: it tells whether the server has queues. After it: others may have been
    // faster.
    auto item = pop(call, queue);
    if (!item) return pass(item.error());
    if (*item) return **std::move(item);
    if (auto filled = wait(call, keys); !filled) return pass(filled.error());
  }
}

Result<std::optional<std::string>> Store::queue_try_pop(std::string_view queue, Timeout timeout) {
  auto call = this->call("pop from queue", queue, timeout);
  return pop(call, queue);
}

Result<std::optional<std::string>> Store::pop(Call& call, std::string_view queue) {
  if (auto fits = check_limits(call, queue); !fits) return pass(fits.error());
  return session_->run(call, Operation::QueuePop, Repeat::Unsafe, [&](Connection& connection) {
    const auto request = Request(connection.opcode(Operation::QueuePop)).key(prefix_, queue);
    return ask_item(connection, request, call.deadline);
  });
}

Result<std::int64_t> Store::queue_len(std::string_view queue, Timeout timeout) {
  auto call = this->call("measure queue", queue, timeout);
  if (auto fits = check_limits(call, queue); !fits) return pass(fits.error());
  return session_->run(call, Operation::QueueLen, Repeat::Safe, [&](Connection& connection) {
    const auto request = Request(connection.opcode(Operation::QueueLen)).key(prefix_, queue);
    return ask_count(connection, request, call.deadline);
  });
}

Result<void> Store::barrier(std::string_view key, std::int64_t world_size, Timeout timeout) {
  auto call = this->call("barrier", key, timeout);
  if (world_size < 1) {
    return pass(
        session_->error(call, Errc::InvalidArgument,
                        "a world size of " + std::to_string(world_size) + " is not positive"));
  }
  if (!is_view()) {
    if (auto fits = check_limits(call, key); !fits) return fits;
    return session_->run(call, Operation::Barrier, Repeat::Unsafe, [&](Connection& connection) {
      const auto request =
          Request(connection.opcode(Operation::Barrier)).key(prefix_, key).number(bits(world_size));
      return ask_release(connection, request, call.deadline);
    });
  }
  const std::string arrivals = std::string(key) + "/num_members";
  const std::array last{std::string(key) + "/last_member"};
  const auto arrived = add(call, arrivals, 1);
  if (!arrived) return pass(arrived.error());
  if (*arrived == world_size) {
    if (auto released = set(call, last.front(), "1"); !released) return released;
  }
  return wait(call, last);
}

Result<void> Store::ping(Timeout timeout) {
  auto call = this->call("ping", timeout);
  return session_->run(call, Operation::Ping, Repeat::Safe, [&](Connection& connection) {
    return ask_echo(connection, {}, call.deadline);
  });
}

}  // namespace muster::store_client
