#include "agent/run/error_file.hpp"

#include "base/posix/stream.hpp"

#include <boost/json.hpp>

namespace muster::agent {
namespace json = boost::json;

std::string recorded_error(const std::string& path) {
  constexpr std::size_t kFileLimit = 1024 * 1024;
  const auto text = posix::file_tail(path, kFileLimit);
  json::error_code error;
  const auto document = json::parse(text, error);
  if (error || !document.is_object()) return {};
  const auto* message = document.get_object().if_contains("message");
  if (message == nullptr) return {};
  if (const auto* plain = message->if_string()) return std::string(*plain);
  const auto* nested = message->if_object();
  if (nested == nullptr) return {};
  if (const auto* extra = nested->if_contains("extraInfo");
      extra != nullptr && extra->is_object()) {
    const auto* stack = extra->get_object().if_contains("py_callstack");
    if (stack != nullptr && stack->is_string()) return std::string(stack->get_string());
  }
  const auto* inner = nested->if_contains("message");
  return inner != nullptr && inner->is_string() ? std::string(inner->get_string()) : std::string();
}

}  // namespace muster::agent
