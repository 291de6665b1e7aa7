#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// The framing of the attendance (proto/muster/v1/rendezvous.proto): magic, then frames, each with
/// its length before it. Nothing here trusts a length: memory is taken for what has come only.
namespace muster::rendezvous {

/// What each side says first. The last byte is the version of the protocol.
constexpr std::string_view kMagic = "\xf5MUSTER\x01";
constexpr char kMagicByte = kMagic.front();  ///< No c10d client, HTTP or gRPC begins like this.

constexpr std::size_t kFrameHeaderBytes = 4;
/// Of a frame. One that is longer costs its connection. It holds the Hello, the Stop and the
/// Verdict of a job of 10,000 nodes.
constexpr std::size_t kMaxFrameBytes = 1024 * 1024;
/// Of an Open: from whom nothing is known yet.
constexpr std::size_t kMaxOpenBytes = 4 * 1024;

/// How the magic of the other side compares with ours, as far as it has come.
enum class Magic { Partial, Ours, OtherVersion, Foreign };
[[nodiscard]] Magic compare_magic(std::string_view begun) noexcept;

/// The body of the frame at the beginning of `input`; nullopt as long as it is not complete. It
/// took kFrameHeaderBytes and the body's size. Fails on a length of 0 or above `limit`.
[[nodiscard]] Result<std::optional<std::string_view>> first_frame(std::string_view input,
                                                                  std::size_t limit);

/// Appends the header of a frame whose body is not known yet; `end_frame` with what this returned
/// writes the length.
[[nodiscard]] std::size_t begin_frame(std::string& out);
void end_frame(std::string& out, std::size_t begun);

}  // namespace muster::rendezvous
