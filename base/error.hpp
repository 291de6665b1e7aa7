#pragma once

#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace muster {

/// What the caller should do about an error: mend the input, look elsewhere, rejoin (Stale), back
/// off (Unavailable), wait no longer, or give up.
enum class Errc { InvalidArgument, NotFound, Stale, Unavailable, Timeout, Cancelled, Internal };

/// Why something that can fail in a sound program did. The message names the act and its object,
/// then the cause: `exec /opt/train: permission denied`.
struct Error {
  Errc code;
  std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;  // std::expected on the day we move to C++23.

/// `return fail(Errc::NotFound, "...")` from a function that returns a Result.
[[nodiscard]] inline tl::unexpected<Error> fail(Errc code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

/// Passes another call's error on as it is.
[[nodiscard]] inline tl::unexpected<Error> pass(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace muster
