// musterctl: asks a rendezvous server about its jobs, or to change them, and ends.

#include "base/exit_codes.hpp"
#include "base/posix/stream.hpp"
#include "launcher/ctl/commands.hpp"
#include "launcher/ctl/find_server.hpp"
#include "launcher/ctl/options.hpp"

#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

namespace muster::ctl {
namespace {

Environment read_environment() {
  Environment environment;
  for (const char* name : {"MUSTER_TOKEN_FILE", "XDG_RUNTIME_DIR"}) {
    if (const char* const value = std::getenv(name)) environment.emplace(name, value);
  }
  return environment;
}

int end_with(int code, const std::string& message) {
  (void)posix::write_within(2, "musterctl: error: " + message + "\n", posix::kReadPatience);
  return code;
}

int control(const std::vector<std::string>& argv) {
  const auto environment = read_environment();
  const auto parsed = parse_command_line(argv, environment);
  if (const auto* end = std::get_if<PrintAndEnd>(&parsed)) {
    const bool told = posix::write_within(1, end->out, posix::kReadPatience);
    (void)posix::write_within(2, end->err, posix::kReadPatience);
    return told ? end->code : kOwnError;
  }
  const auto& options = std::get<Options>(parsed);
  const auto server = find_server(options, environment);
  if (!server) {
    const bool usage = server.error().code == Errc::InvalidArgument;
    return end_with(usage ? kUsage : kOwnError, server.error().message);
  }
  const auto done = run(options, *server);
  return done ? 0 : end_with(kOwnError, done.error().message);
}

}  // namespace
}  // namespace muster::ctl

int main(int argc, char** argv) {
  return muster::ctl::control(std::vector<std::string>(argv, argv + argc));
}
