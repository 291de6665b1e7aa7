#include "rendezvous/client/token_file.hpp"

#include "base/posix/private_file.hpp"

#include <algorithm>

namespace muster::rendezvous {

Result<std::string> read_token_file(const std::string& path) {
  constexpr std::size_t kLongest = 4096;
  auto content = posix::read_private_file(path, kLongest);
  if (!content) return pass(content.error());
  const auto end = content->find_last_not_of(" \t\r\n");
  content->resize(end == std::string::npos ? 0 : end + 1);
  if (content->empty())
    return fail(Errc::InvalidArgument, path + " is empty: a token belongs there");
  const bool fits = std::ranges::all_of(*content, [](char c) { return c > ' ' && c < 0x7F; });
  if (!fits) {
    return fail(Errc::InvalidArgument,
                path + " holds no token: one line of letters, digits and punctuation");
  }
  return content;
}

}  // namespace muster::rendezvous
