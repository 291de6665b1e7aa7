#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

// Stands in for base/posix/tcp_stream.cpp in fuzz_store_client: no sockets, and no time passes.

/// What a server sends on one connection.
struct ScriptedReplies {
  std::string_view bytes;
  std::size_t piece = 1;      ///< Comes in pieces of so many bytes.
  bool pauses_first = false;  ///< The client's patience ends once before the first byte comes.
  bool stays_silent = false;  ///< After the last byte; else it closes.
};

/// Those of the connections that will be made, in order. There is no server for further ones.
void script_connections(std::vector<ScriptedReplies> each);

/// What comes from now on, on the newest connection.
void script_replies(const ScriptedReplies& replies);
