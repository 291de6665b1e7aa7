#include "tests/rendezvous/core/kv_model.hpp"

#include <cerrno>
#include <cstdlib>

namespace kv = muster::rendezvous::kv;

namespace {

std::string little_endian(std::uint64_t number, int bytes = 8) {
  std::string text;
  for (int at = 0; at < bytes; ++at) text += static_cast<char>(number >> (8 * at) & 0xff);
  return text;
}

std::string with_length(std::string_view bytes) {
  return little_endian(bytes.size()) + std::string(bytes);
}

std::string quoted(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "'";
  for (const char each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    if (byte >= ' ' && byte <= '~') {
      text += each;
    } else {
      text += std::string("\\x") + kDigits[byte >> 4] + kDigits[byte & 15];
    }
  }
  return text + "'";
}

}  // namespace

/// One command's execution.
class KvModel::Run {
 public:
  Run(KvModel& model, std::uint64_t client) : model_(model), client_(client) {}

  Outcome outcome;

  void operator()(const kv::Set& set) { give(std::string(set.key), std::string(set.value), true); }

  void operator()(const kv::CompareSet& swap) {
    const std::string key(swap.key);
    const auto held = model_.values_.find(key);
    if (held == model_.values_.end() && !swap.expected.empty()) {
      outcome.reply = with_length(swap.expected);
    } else if (held != model_.values_.end() && held->second != swap.expected) {
      outcome.reply = with_length(held->second);
    } else {
      give(key, std::string(swap.desired), held == model_.values_.end());
      outcome.reply = with_length(swap.desired);
    }
  }

  void operator()(const kv::Get& get) { outcome.reply = with_length(value_of(get.key)); }

  void operator()(const kv::Add& add) {
    const std::string key(add.key);
    const auto number = model_.number_at(key);
    if (!number) return refuse();
    const auto sum = static_cast<std::uint64_t>(*number) + static_cast<std::uint64_t>(add.delta);
    give(key, std::to_string(static_cast<std::int64_t>(sum)), true);
    outcome.reply = little_endian(sum);
  }

  void operator()(const kv::Check& check) {
    bool all = true;
    for (const auto key : check.keys) all = all && model_.is_present(std::string(key));
    outcome.reply = std::string(1, all ? '\0' : '\1');
  }

  void operator()(const kv::Wait& wait) {
    model_.waits_.remove_if(
        [&](const Wait& each) { return each.client == client_ && !each.is_barrier; });
    Wait begun{.client = client_, .is_barrier = false, .lacks = {}};
    for (const auto key : wait.keys) {
      if (!model_.is_present(std::string(key))) begun.lacks.emplace(key);
    }
    if (begun.lacks.empty()) {
      outcome.reply = std::string(1, '\0');
      return;
    }
    outcome.is_withheld = true;
    model_.waits_.push_back(begun);
  }

  void operator()(const kv::CountKeys&) { outcome.reply = little_endian(model_.values_.size()); }

  void operator()(const kv::Delete& remove) {
    outcome.reply = little_endian(model_.values_.erase(std::string(remove.key)));
  }

  void operator()(const kv::Append& append) {
    give(std::string(append.key), value_of(append.key) + std::string(append.tail), true);
  }

  void operator()(const kv::MultiGet& get) {
    for (const auto key : get.keys) outcome.reply += with_length(value_of(key));
  }

  void operator()(const kv::MultiSet& set) {
    for (const auto& [key, value] : set.pairs) give(std::string(key), std::string(value), true);
  }

  void operator()(const kv::CancelWait&) {
    model_.forget(client_);
    outcome.reply = std::string(1, '\1');
  }

  void operator()(const kv::Ping& ping) { outcome.reply = little_endian(ping.nonce, 4); }

  void operator()(const kv::QueuePush& push) {
    const std::string key(push.key);
    model_.queues_[key].emplace_back(push.item);
    for (auto wait = model_.waits_.begin(); wait != model_.waits_.end(); ++wait) {
      if (!wait->lacks.contains(key)) continue;
      satisfy(wait, key);
      return;
    }
  }

  void operator()(const kv::QueuePop& pop) {
    const auto queue = model_.queues_.find(std::string(pop.key));
    outcome.reply = little_endian(queue == model_.queues_.end() ? 0 : queue->second.size());
    if (queue == model_.queues_.end()) return;
    outcome.reply += with_length(queue->second.front());
    queue->second.pop_front();
    if (queue->second.empty()) model_.queues_.erase(queue);
  }

  void operator()(const kv::QueueLength& length) {
    const auto queue = model_.queues_.find(std::string(length.key));
    outcome.reply = little_endian(queue == model_.queues_.end() ? 0 : queue->second.size());
  }

  void operator()(const kv::ListKeys&) {
    outcome.reply = little_endian(model_.values_.size());
    for (const auto& [key, value] : model_.values_) outcome.reply += with_length(key);
  }

  void operator()(const kv::Barrier& barrier) {
    const std::string key(barrier.key);
    const auto before = model_.number_at(key);
    if (!before) return refuse();
    const auto count = static_cast<std::int64_t>(static_cast<std::uint64_t>(*before) + 1);
    const bool is_complete = barrier.world_size <= 0 || count >= barrier.world_size;
    give(key, std::to_string(count), is_complete);
    if (is_complete) {
      outcome.reply = std::string(1, '\0');
    } else {
      outcome.is_withheld = true;
      model_.waits_.push_back({.client = client_, .is_barrier = true, .lacks = {key}});
    }
  }

  void operator()(const kv::Watch&) { outcome.reply = std::string(1, '\3'); }

 private:
  std::string value_of(std::string_view key) const {
    const auto found = model_.values_.find(std::string(key));
    return found == model_.values_.end() ? "" : found->second;
  }

  void give(const std::string& key, std::string value, bool wakes) {
    model_.values_[key] = std::move(value);
    if (!wakes) return;
    for (auto wait = model_.waits_.begin(); wait != model_.waits_.end();) {
      const auto next = std::next(wait);
      if (wait->lacks.contains(key)) satisfy(wait, key);
      wait = next;
    }
  }

  void satisfy(std::list<Wait>::iterator wait, const std::string& key) {
    wait->lacks.erase(key);
    if (!wait->lacks.empty()) return;
    outcome.woken.push_back(wait->client);
    model_.waits_.erase(wait);
  }

  void refuse() { outcome.is_refused = true; }

  KvModel& model_;
  std::uint64_t client_;
};

KvModel::Outcome KvModel::execute(std::uint64_t client, const kv::Command& command) {
  Run run(*this, client);
  std::visit(run, command);
  return run.outcome;
}

void KvModel::forget(std::uint64_t client) {
  waits_.remove_if([&](const Wait& wait) { return wait.client == client; });
}

std::map<std::uint64_t, std::multiset<std::string>> KvModel::pending() const {
  std::map<std::uint64_t, std::multiset<std::string>> result;
  for (const auto& wait : waits_) result[wait.client].insert(wait.lacks.begin(), wait.lacks.end());
  return result;
}

bool KvModel::is_present(const std::string& key) const {
  return values_.contains(key) || queues_.contains(key);
}

std::optional<std::int64_t> KvModel::number_at(const std::string& key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return 0;
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(found->second.c_str(), &end, 10);
  if (errno == ERANGE || end == found->second.c_str()) return std::nullopt;
  return number;
}

std::string wire_bytes(const kv::Reply& reply) {
  struct {
    std::string operator()(const kv::Nothing&) { return ""; }
    std::string operator()(const kv::Withheld&) { return ""; }
    std::string operator()(const kv::Refused&) { return ""; }
    std::string operator()(const kv::StopWaiting&) { return std::string(1, '\0'); }
    std::string operator()(const kv::WaitCancelled&) { return std::string(1, '\1'); }
    std::string operator()(const kv::Watching&) { return std::string(1, '\3'); }
    std::string operator()(const kv::Readiness& is) {
      return std::string(1, is.all_exist ? '\0' : '\1');
    }
    std::string operator()(const kv::Number& is) {
      return little_endian(static_cast<std::uint64_t>(is.value));
    }
    std::string operator()(const kv::Value& is) { return with_length(is.bytes); }
    std::string operator()(const kv::Echo& is) { return little_endian(is.nonce, 4); }
    std::string operator()(const kv::Values& is) {
      std::string text;
      for (const auto each : is.each) text += with_length(each);
      return text;
    }
    std::string operator()(const kv::Keys& is) {
      return little_endian(is.each.size()) + (*this)(kv::Values{is.each});
    }
    std::string operator()(const kv::Popped& is) {
      const auto length = little_endian(static_cast<std::uint64_t>(is.length_before));
      return is.length_before == 0 ? length : length + with_length(is.item);
    }
  } to_bytes;
  return std::visit(to_bytes, reply);
}

std::string describe(const kv::Command& command) {
  struct {
    std::string operator()(const kv::Set& is) {
      return "SET " + quoted(is.key) + " " + quoted(is.value);
    }
    std::string operator()(const kv::CompareSet& is) {
      return "COMPARE_SET " + quoted(is.key) + " " + quoted(is.expected) + " " + quoted(is.desired);
    }
    std::string operator()(const kv::Get& is) { return "GET " + quoted(is.key); }
    std::string operator()(const kv::Add& is) {
      return "ADD " + quoted(is.key) + " " + std::to_string(is.delta);
    }
    std::string operator()(const kv::Check& is) { return "CHECK" + list(is.keys); }
    std::string operator()(const kv::Wait& is) { return "WAIT" + list(is.keys); }
    std::string operator()(const kv::CountKeys&) { return "GETNUMKEYS"; }
    std::string operator()(const kv::Delete& is) { return "DELETE_KEY " + quoted(is.key); }
    std::string operator()(const kv::Append& is) {
      return "APPEND " + quoted(is.key) + " " + quoted(is.tail);
    }
    std::string operator()(const kv::MultiGet& is) { return "MULTI_GET" + list(is.keys); }
    std::string operator()(const kv::MultiSet& is) {
      std::string text = "MULTI_SET";
      for (const auto& [key, value] : is.pairs) text += " " + quoted(key) + " " + quoted(value);
      return text;
    }
    std::string operator()(const kv::CancelWait&) { return "CANCEL_WAIT"; }
    std::string operator()(const kv::Ping& is) { return "PING " + std::to_string(is.nonce); }
    std::string operator()(const kv::QueuePush& is) {
      return "QUEUE_PUSH " + quoted(is.key) + " " + quoted(is.item);
    }
    std::string operator()(const kv::QueuePop& is) { return "QUEUE_POP " + quoted(is.key); }
    std::string operator()(const kv::QueueLength& is) { return "QUEUE_LEN " + quoted(is.key); }
    std::string operator()(const kv::ListKeys&) { return "LIST_KEYS"; }
    std::string operator()(const kv::Barrier& is) {
      return "BARRIER " + quoted(is.key) + " " + std::to_string(is.world_size);
    }
    std::string operator()(const kv::Watch& is) { return "WATCH_KEY " + quoted(is.key); }

    static std::string list(std::span<const std::string_view> keys) {
      std::string text;
      for (const auto key : keys) text += " " + quoted(key);
      return text;
    }
  } in_words;
  return std::visit(in_words, command);
}
