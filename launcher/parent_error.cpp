#include "launcher/parent_error.hpp"

#include "base/failure_text.hpp"
#include "base/text.hpp"

#include <boost/json.hpp>

namespace muster::launcher {
namespace json = boost::json;
namespace {

/// As Python has it: a signal's number is negative.
int error_code_of(const Verdict& verdict) {
  if (!verdict.cause || !verdict.cause->status) return verdict.exit_code;
  const auto& status = *verdict.cause->status;
  return status.signal != 0 ? -status.signal : status.code;
}

/// The exception's line, or else what the closing block begins with.
std::string message_of(const Verdict& verdict) {
  if (verdict.cause && !verdict.cause->traceback.empty())
    return std::string(exception_of(verdict.cause->traceback));
  const bool has_detail = verdict.cause && !verdict.cause->detail.empty() &&
                          verdict.cause->cause != Cause::LostNode;  // The summary has it.
  return verdict.summary + (has_detail ? ": " + verdict.cause->detail : "");
}

std::string stack_of(const WorkerFailure& cause) {
  if (!cause.traceback.empty()) return cause.traceback;
  std::string text;
  for (const auto& line : cause.stderr_lines) text += (text.empty() ? "" : "\n") + line;
  return text;
}

std::string what_is_known(const Verdict& verdict, std::int64_t now) {
  constexpr std::int64_t kSecond = 1'000'000;
  const auto* const cause = verdict.cause ? &*verdict.cause : nullptr;
  const auto at = cause != nullptr && cause->ended_at != 0 ? cause->ended_at : now;
  json::object extra{{"py_callstack", cause == nullptr ? "" : to_utf8(stack_of(*cause))},
                     {"timestamp", std::to_string(at / kSecond)}};
  json::object message{{"message", to_utf8(message_of(verdict))},
                       {"extraInfo", std::move(extra)},
                       {"errorCode", error_code_of(verdict)}};
  return json::serialize(json::object{{"message", std::move(message)}});
}

}  // namespace

std::string parent_error(const Verdict& verdict, std::string_view recorded, std::int64_t now) {
  json::error_code error;
  auto document = json::parse(recorded, error);
  auto* const message =
      error || !document.is_object() ? nullptr : document.get_object().if_contains("message");
  if (message != nullptr && message->is_string()) return std::string(recorded);
  if (message == nullptr || !message->is_object()) return what_is_known(verdict, now);
  message->get_object()["errorCode"] = error_code_of(verdict);
  return json::serialize(document);
}

}  // namespace muster::launcher
