#include "rendezvous/server/local_server_file.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace muster::rendezvous {
namespace {

constexpr std::string_view kSuffix = ".server";

/// Lines of `name value`, the value any bytes but a line's end.
std::string written(const LocalServer& server) {
  std::string text = "program " + server.program + "\npid " + std::to_string(server.pid) +
                     "\nendpoint " + to_string(server.endpoint) + "\n";
  if (server.token) text += "token " + *server.token + "\n";
  if (!server.job.empty() && server.job.find('\n') == std::string::npos) {
    text += "job " + server.job + "\n";
  }
  return text;
}

/// What such lines say; nullopt where they don't name an endpoint. Names that are not known are
/// skipped: a newer server may say more.
std::optional<LocalServer> read(std::string_view text) {
  LocalServer server;
  bool has_endpoint = false;
  for (const auto line : lines_of(text)) {
    const auto blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    const auto name = line.substr(0, blank);
    const auto value = line.substr(blank + 1);
    if (name == "program") server.program = value;
    if (name == "job") server.job = value;
    if (name == "token") server.token = std::string(value);
    if (name == "pid") {
      std::from_chars(value.data(), value.data() + value.size(), server.pid);
    }
    if (name == "endpoint") {
      const auto endpoint = parse_endpoint(value, 0);
      has_endpoint = endpoint && endpoint->port != 0;
      if (has_endpoint) server.endpoint = *endpoint;
    }
  }
  return has_endpoint ? std::optional(server) : std::nullopt;
}

}  // namespace

std::string runtime_folder(const std::string& xdg_runtime_dir) {
  if (!xdg_runtime_dir.empty()) return xdg_runtime_dir + "/muster";
  return "/tmp/muster-" + posix::user_id();
}

Result<LocalServerFile> LocalServerFile::create(const std::string& folder,
                                                const LocalServer& server) {
  const auto kept = posix::PrivateFolder::make(folder);
  if (!kept) return pass(kept.error());
  auto file = posix::LockedFile::create(*kept, std::to_string(server.pid) + std::string(kSuffix),
                                        written(server));
  if (!file) return pass(file.error());
  return LocalServerFile(std::move(*file));
}

LocalServers local_servers(const std::vector<std::string>& folders) {
  LocalServers servers;
  for (const auto& path : folders) {
    const auto folder = posix::PrivateFolder::open(path);
    if (!folder && folder.error().code == Errc::NotFound) continue;
    const auto files =
        folder.and_then([](const auto& opened) { return opened.files(std::string(kSuffix)); });
    if (!files) {
      servers.passed_over.push_back(files.error().message);
      continue;
    }
    for (const auto& file : *files) {
      if (!file.in_use) {
        folder->remove_unused(file.name);
      } else if (auto server = read(file.content)) {
        servers.found.push_back(std::move(*server));
      }
    }
  }
  std::ranges::sort(servers.found, {}, &LocalServer::pid);
  return servers;
}

}  // namespace muster::rendezvous
