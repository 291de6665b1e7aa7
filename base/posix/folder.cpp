#include "base/posix/folder.hpp"

#include "base/posix/fd.hpp"

#include <cerrno>
#include <cstdint>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::posix {

Result<std::string> make_unique_folder(const std::string& prefix, unsigned mode) {
  constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyz012345";
  constexpr int kTries = 100;
  for (int tries = 0; tries < kTries; ++tries) {
    std::uint64_t random = 0;
    if (::getrandom(&random, sizeof random, 0) < 0)
      return pass(errno_error(errno, "get random bytes"));
    std::string path = prefix;
    for (int i = 0; i < 8; ++i, random >>= 5) path += kLetters[random & 31];
    if (::mkdir(path.c_str(), mode) == 0) return path;
    if (errno != EEXIST) return pass(errno_error(errno, "make folder " + path));
  }
  return pass(errno_error(EEXIST, "make a folder " + prefix + "*"));
}

Result<void> make_folder(const std::string& path, unsigned mode) {
  if (::mkdir(path.c_str(), mode) == 0) return {};
  return pass(errno_error(errno, "make folder " + path));
}

std::string short_host_name() {
  char name[256] = "localhost";
  ::gethostname(name, sizeof name - 1);
  const std::string whole = name;
  return whole.substr(0, whole.find('.'));
}

}  // namespace muster::posix
