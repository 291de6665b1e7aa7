#pragma once

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "base/posix/locked_file.hpp"

#include <optional>
#include <string>
#include <vector>

/// How a user's programs find the rendezvous servers that the same user runs on this machine: each
/// server keeps a file in a folder that only its user can enter, with its endpoint and, where it
/// made its token itself, that token.
namespace muster::rendezvous {

struct LocalServer {
  int pid = 0;
  std::string program;               ///< "musterd", or "muster" for an embedded one.
  Endpoint endpoint;                 ///< To be dialled on this machine.
  std::optional<std::string> token;  ///< nullopt: it was given one, which is not written down.
  std::string job;                   ///< Of an embedded one: its only job. May be empty.
};

/// `XDG_RUNTIME_DIR/muster`, or /tmp/muster-UID where there is no such variable (pass "").
[[nodiscard]] std::string runtime_folder(const std::string& xdg_runtime_dir);

/// The file of a server that runs. It is locked for as long as the process lives, by which a file
/// that was left behind is told from one in use; those are removed by whoever meets them.
/// Move-only; removes the file.
class LocalServerFile {
 public:
  /// Makes the folder (mode 0700) and the file (0600). A folder that is not ours alone, or is a
  /// symbolic link, is refused with InvalidArgument.
  [[nodiscard]] static Result<LocalServerFile> create(const std::string& folder,
                                                      const LocalServer& server);

  [[nodiscard]] const std::string& path() const { return file_.path(); }

 private:
  explicit LocalServerFile(posix::LockedFile file) : file_(std::move(file)) {}
  posix::LockedFile file_;
};

/// The servers that run and keep a file in one of these folders. A folder that is missing has none;
/// one that is not ours alone is passed over: anybody may have made it where everybody can.
struct LocalServers {
  std::vector<LocalServer> found;        ///< By process id.
  std::vector<std::string> passed_over;  ///< Why, of each such folder.
};
[[nodiscard]] LocalServers local_servers(const std::vector<std::string>& folders);

}  // namespace muster::rendezvous
