// The store's client reads replies of arbitrary bytes; what each call brings is compared with what
// the reference says, and no piece of memory may be larger than -malloc_limit_mb, which is far less
// than a reply can claim. An input is one byte for the server's dialect (A to G, else detected),
// then calls:
//   act (bits 0-4), how the bytes come (bits 5-7)  size (2 bytes)  so many bytes, fewer at the end
// The bytes of Connect are those of up to four connections, each after a byte with its number of
// bytes (bits 0-4) and how they come. make_store_client_corpus.py writes the golden traces so.
#include "rendezvous/store_client/store_client.hpp"
#include "tests/fuzz/reply_reference.hpp"
#include "tests/fuzz/scripted_stream.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>

namespace {

using namespace std::string_view_literals;
using namespace muster::store_client;
using muster::Result;

constexpr std::uint8_t kDialects = 7;
constexpr unsigned kLowBits = 31;
constexpr std::size_t kCallHead = 3;
constexpr std::size_t kMostConnections = 4;
constexpr auto kEcho = "\x7F\x7F\x7F\x7F"sv;
constexpr auto kFourConfirmed = "\1\1\1\1"sv;
constexpr auto kNoKeys = "\0\0\0\0\0\0\0\0"sv;

void fail(const std::string& difference) {
  std::fprintf(stderr, "the client and its reference differ: %s\n", difference.c_str());
  std::abort();
}

ScriptedReplies replies_of(unsigned head, std::string_view bytes) {
  constexpr std::size_t kAllAtOnce = 16384;
  return {.bytes = bytes,
          .piece = (head & 128U) != 0 ? kAllAtOnce : 1,
          .pauses_first = (head & 64U) != 0,
          .stays_silent = (head & 32U) != 0};
}

Result<StoreClient> dial(std::optional<Dialect> dialect) {
  ConnectOptions options;
  options.reconnect_patience = {};
  options.wait_for_server = false;
  options.dialect = dialect;
  return StoreClient::connect({"127.0.0.1", 1}, options);
}

/// To a server that proves its dialect.
StoreClient connect(std::optional<Dialect> dialect) {
  auto proof = kEcho;
  if (dialect == Dialect::A) proof = kNoKeys;
  if (dialect == Dialect::B) proof = kFourConfirmed.substr(0, 1);
  if (dialect == Dialect::C) proof = kFourConfirmed;
  script_connections({{.bytes = proof}});
  auto client = dial(dialect);
  if (!client) fail("it did not connect: " + client.error().message);
  return *std::move(client);
}

/// None is believed that did not prove what it speaks.
void dial_anything(std::optional<Dialect> dialect, std::string_view bytes) {
  std::vector<ScriptedReplies> servers;
  while (!bytes.empty() && servers.size() < kMostConnections) {
    const auto head = static_cast<unsigned char>(bytes[0]);
    servers.push_back(replies_of(head, bytes.substr(1, head & kLowBits)));
    bytes.remove_prefix(1 + servers.back().bytes.size());
  }
  script_connections(servers);
  const auto client = dial(dialect);
  script_connections({});
  if (!client) return;

  const auto sends = [&](std::size_t connection, std::string_view proof) {
    return connection < servers.size() && !servers[connection].pauses_first &&
           servers[connection].bytes.starts_with(proof);
  };
  const auto counts_keys = [&](std::size_t connection) {
    if (!sends(connection, "")) return false;
    return expected_of(Act::CountKeys, {Dialect::A}, servers[connection]).text.starts_with("n") ||
           servers[connection].bytes.size() > kNoKeys.size();
  };
  bool is_proved = false;
  switch (client->dialect().dialect) {
    case Dialect::A:
      is_proved = counts_keys(dialect ? 0 : 1);
      break;
    case Dialect::B:
      is_proved = sends(dialect ? 0 : 2, "\1") && (dialect || counts_keys(1));
      break;
    case Dialect::C:
      is_proved = sends(dialect ? 0 : 2, kFourConfirmed);
      break;
    default:
      is_proved = sends(0, kEcho);
      break;
  }
  if (!is_proved) fail("it took for a store what did not answer as one");
}

template <class T>
std::string text_of(const Result<T>& result, std::string (*text)(const T&)) {
  return result ? text(*result) : error_text(static_cast<int>(result.error().code));
}
std::string text_of(const Result<void>& result) {
  return result ? "ok" : error_text(static_cast<int>(result.error().code));
}
std::string text_of(const Result<std::int64_t>& result) {
  return text_of<std::int64_t>(result, [](const auto& number) { return number_text(number); });
}
std::string text_of(const Result<bool>& result) {
  return text_of<bool>(result, [](const auto& flag) { return number_text(flag ? 1 : 0); });
}
std::string text_of(const Result<std::string>& result) {
  return text_of<std::string>(result, [](const auto& value) { return value_text(value); });
}
std::string text_of(const Result<std::optional<std::string>>& result) {
  return text_of<std::optional<std::string>>(
      result, [](const auto& item) { return item ? value_text(*item) : std::string(); });
}
std::string text_of(const Result<std::vector<std::string>>& result) {
  return text_of<std::vector<std::string>>(result, [](const auto& values) {
    std::string text;
    for (const auto& value : values) text += value_text(value);
    return text;
  });
}

std::string flushed(Store& store, const Result<void>& written) {
  return text_of(written ? store.flush() : written);
}

std::string perform(Act act, Store& store) {
  const std::vector<std::string> keys(kMultiGetKeys, "k");
  switch (act) {
    case Act::Connect:
      break;
    case Act::SetAndFlush:
      return flushed(store, store.set("k", "v"));
    case Act::MultiSetAndFlush: {
      const std::pair<std::string, std::string> entries[] = {{"k", "v"}};
      return flushed(store, store.multi_set(entries));
    }
    case Act::AppendAndFlush:
      return flushed(store, store.append("k", "v"));
    case Act::Get:
      return text_of(store.get("k"));
    case Act::MultiGet:
      return text_of(store.multi_get(keys));
    case Act::Wait:
      return text_of(store.wait("k"));
    case Act::Check:
      return text_of(store.check("k"));
    case Act::Add:
      return text_of(store.add("k", 1));
    case Act::CompareSet:
      return text_of(store.compare_set("k", "a", "b"));
    case Act::Delete:
      return text_of(store.delete_key("k"));
    case Act::CountKeys:
      return text_of(store.num_keys());
    case Act::ListKeys:
      return text_of(store.list_keys());
    case Act::QueuePush:
      return text_of(store.queue_push("q", "item"));
    case Act::QueuePop:
      return text_of(store.queue_pop("q"));
    case Act::QueueTryPop:
      return text_of(store.queue_try_pop("q"));
    case Act::QueueLength:
      return text_of(store.queue_len("q"));
    case Act::Barrier:
      return text_of(store.barrier("b", kBarrierSize));
    case Act::BarrierOfView:
      return text_of(store.under("view").barrier("b", kBarrierSize));
    case Act::Ping:
      return text_of(store.ping());
  }
  return "ok";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t mode = bytes[0] % (kDialects + 1);
  std::optional<Dialect> dialect;
  if (mode < kDialects) dialect = static_cast<Dialect>(mode);
  std::optional<StoreClient> client;

  std::string_view rest(reinterpret_cast<const char*>(bytes + 1), size - 1);
  while (rest.size() >= kCallHead) {
    const auto head = static_cast<unsigned char>(rest[0]);
    const std::size_t length =
        static_cast<unsigned char>(rest[1]) + 256U * static_cast<unsigned char>(rest[2]);
    const auto sent = rest.substr(kCallHead, length);
    rest.remove_prefix(kCallHead + sent.size());
    const auto act = static_cast<Act>((head & kLowBits) % kActs);
    if (act == Act::Connect) {
      dial_anything(dialect, sent);
      continue;
    }
    if (!client) client = connect(dialect);
    const auto replies = replies_of(head, sent);
    const auto expected = expected_of(act, client->dialect(), replies);
    script_replies(replies);
    const auto got = perform(act, *client);
    if (got != expected.text) {
      fail("act " + std::to_string(static_cast<int>(act)) + " brought " + got + " for " +
           expected.text);
    }
    if (!expected.stays_connected) client.reset();
  }
  return 0;
}
