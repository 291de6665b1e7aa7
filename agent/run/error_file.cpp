#include "agent/run/error_file.hpp"

#include "base/posix/stream.hpp"

#include <boost/json.hpp>

namespace muster::agent {
namespace json = boost::json;
namespace {

std::string text_of(const json::object& object, std::string_view name) {
  const auto* const value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::string text_of_nested(const json::object& message) {
  if (const auto* extra = message.if_contains("extraInfo");
      extra != nullptr && extra->is_object()) {
    if (auto stack = text_of(extra->get_object(), "py_callstack"); !stack.empty()) return stack;
  }
  return text_of(message, "message");
}

}  // namespace

RecordedError recorded_error(const std::string& path) {
  const auto content = posix::file_tail(path, kMaxErrorFile + 1);
  if (content.empty()) return {};
  if (content.size() > kMaxErrorFile) return {{}, "it has more than 1 MiB"};
  json::error_code error;
  const auto document = json::parse(content, error);
  if (error) return {{}, "it is not JSON: " + error.message()};
  if (!document.is_object()) return {{}, "it holds no JSON object"};
  const auto* const message = document.get_object().if_contains("message");
  auto text = message != nullptr && message->is_object()
                  ? text_of_nested(message->get_object())
                  : text_of(document.get_object(), "message");
  if (text.empty()) return {{}, "it has no message"};
  return {std::move(text), {}};
}

}  // namespace muster::agent
