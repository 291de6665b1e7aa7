#include "base/posix/socket.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fstream>
#include <net/if.h>
#include <netinet/in.h>
#include <set>
#include <sstream>
#include <unistd.h>

namespace muster::posix {
namespace {

sockaddr_in& as_v4(SocketAddress& address) {
  return *reinterpret_cast<sockaddr_in*>(&address.storage);
}
sockaddr_in6& as_v6(SocketAddress& address) {
  return *reinterpret_cast<sockaddr_in6*>(&address.storage);
}
const sockaddr_in& as_v4(const SocketAddress& address) {
  return *reinterpret_cast<const sockaddr_in*>(&address.storage);
}
const sockaddr_in6& as_v6(const SocketAddress& address) {
  return *reinterpret_cast<const sockaddr_in6*>(&address.storage);
}

/// Inodes of the listening sockets on `port`, from one of the tables in /proc/net.
void collect_listeners(const char* table, std::uint16_t port, std::set<std::string>& inodes) {
  constexpr int kListenState = 0x0A;
  std::ifstream in(table);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    std::string slot, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
    fields >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> uid >>
        timeout >> inode;
    const auto colon = local.rfind(':');
    if (colon == std::string::npos || inode.empty()) continue;
    if (std::strtoul(local.c_str() + colon + 1, nullptr, 16) != port) continue;
    if (std::strtoul(state.c_str(), nullptr, 16) != kListenState) continue;
    inodes.insert("socket:[" + inode + "]");
  }
}

bool holds_one_of(const std::string& fd_folder, const std::set<std::string>& inodes) {
  DIR* folder = ::opendir(fd_folder.c_str());
  if (folder == nullptr) return false;
  bool found = false;
  while (const dirent* entry = ::readdir(folder)) {
    char target[64];
    const auto size = ::readlink((fd_folder + "/" + entry->d_name).c_str(), target, sizeof target);
    if (size > 0 && inodes.contains(std::string(target, static_cast<std::size_t>(size)))) {
      found = true;
      break;
    }
  }
  ::closedir(folder);
  return found;
}

}  // namespace

Result<SocketAddress> numeric_address(const Endpoint& endpoint) {
  SocketAddress address;
  if (::inet_pton(AF_INET, endpoint.host.c_str(), &as_v4(address).sin_addr) == 1) {
    as_v4(address).sin_family = AF_INET;
    as_v4(address).sin_port = htons(endpoint.port);
    address.size = sizeof(sockaddr_in);
    return address;
  }
  const auto percent = endpoint.host.find('%');
  const std::string bare = endpoint.host.substr(0, percent);
  if (::inet_pton(AF_INET6, bare.c_str(), &as_v6(address).sin6_addr) == 1) {
    as_v6(address).sin6_family = AF_INET6;
    as_v6(address).sin6_port = htons(endpoint.port);
    address.size = sizeof(sockaddr_in6);
    if (percent != std::string::npos) {
      const std::string scope = endpoint.host.substr(percent + 1);
      as_v6(address).sin6_scope_id = ::if_nametoindex(scope.c_str());
      if (as_v6(address).sin6_scope_id == 0) {
        return fail(Errc::NotFound,
                    "address " + endpoint.host + ": no interface is called '" + scope + "'");
      }
    }
    return address;
  }
  return fail(Errc::NotFound, "'" + endpoint.host + "' is not a numeric address");
}

Endpoint to_endpoint(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.family() == AF_INET) {
    ::inet_ntop(AF_INET, &as_v4(address).sin_addr, text, sizeof text);
    return {text, ntohs(as_v4(address).sin_port)};
  }
  if (address.family() != AF_INET6) return {text, 0};
  const auto& v6 = as_v6(address);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    ::inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof text);
    return {text, ntohs(v6.sin6_port)};
  }
  ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  std::string host = text;
  char name[IF_NAMESIZE];
  if (v6.sin6_scope_id != 0 && ::if_indextoname(v6.sin6_scope_id, name) != nullptr) {
    host += std::string("%") + name;
  }
  return {host, ntohs(v6.sin6_port)};
}

SocketAddress local_address(int socket) {
  SocketAddress address;
  address.size = sizeof address.storage;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address.storage), &address.size);
  return address;
}

Endpoint dialled_from_here(Endpoint bound) {
  if (bound.host == "0.0.0.0" || bound.host == "::") bound.host = "127.0.0.1";
  return bound;
}

namespace {

Result<Fd> bind_quietly(const Endpoint& endpoint) {
  const auto address = numeric_address(endpoint);
  if (!address) return pass(address.error());
  const std::string act = "bind " + to_string(endpoint);
  Fd socket(::socket(address->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return pass(errno_error(errno, act));
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address->family() == AF_INET6) {
    const int both_families = 0;
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &both_families, sizeof both_families);
  }
  if (::bind(socket.get(), address->raw(), address->size) != 0)
    return pass(errno_error(errno, act));
  return socket;
}

Result<void> listen_quietly(int socket) {
  int backlog = SOMAXCONN;
  std::ifstream("/proc/sys/net/core/somaxconn") >> backlog;
  if (::listen(socket, backlog) == 0) return {};
  const int error = errno;
  return pass(errno_error(error, "listen on " + to_string(to_endpoint(local_address(socket)))));
}

}  // namespace

Result<Fd> bind_tcp(const Endpoint& endpoint) {
  auto bound = bind_quietly(endpoint);
  if (!bound) return pass(naming_holder(bound.error(), endpoint.port));
  return bound;
}

Result<void> listen_on(int socket) {
  auto listening = listen_quietly(socket);
  if (!listening)
    return pass(naming_holder(listening.error(), to_endpoint(local_address(socket)).port));
  return listening;
}

Result<Fd> take_port(const Endpoint& endpoint, Hold hold) {
  auto bound = bind_quietly(endpoint);
  if (!bound || hold == Hold::Bound) return bound;
  if (auto listening = listen_quietly(bound->get()); !listening) return pass(listening.error());
  return bound;
}

Error naming_holder(Error error, std::uint16_t port) {
  if (error.code != Errc::InvalidArgument) return error;  // It is not taken.
  const auto holder = port_holder(port);
  if (!holder.empty()) error.message += "; it is held by process " + holder;
  return error;
}

std::string port_holder(std::uint16_t port) {
  std::set<std::string> inodes;
  collect_listeners("/proc/net/tcp", port, inodes);
  collect_listeners("/proc/net/tcp6", port, inodes);
  if (inodes.empty()) return {};
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return {};
  std::string holder;
  while (const dirent* entry = ::readdir(proc)) {
    const std::string pid = entry->d_name;
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!holds_one_of("/proc/" + pid + "/fd", inodes)) continue;
    std::string name;
    std::getline(std::ifstream("/proc/" + pid + "/comm"), name);
    holder = pid + " (" + name + ")";
    break;
  }
  ::closedir(proc);
  return holder;
}

}  // namespace muster::posix
