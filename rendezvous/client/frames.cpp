#include "rendezvous/client/frames.hpp"

#include "base/assert.hpp"
#include "rendezvous/client/planted_fault.hpp"

namespace muster::rendezvous {
namespace {

std::uint32_t big_endian(std::string_view bytes) {
  std::uint32_t number = 0;
  for (const char each : bytes.substr(0, kFrameHeaderBytes)) {
    number = number << 8 | static_cast<unsigned char>(each);
  }
  return number;
}

}  // namespace

Magic compare_magic(std::string_view begun) noexcept {
  constexpr auto kName = kMagic.substr(0, kMagic.size() - 1);
  const auto name = begun.substr(0, kName.size());
  if (name != kName.substr(0, name.size())) return Magic::Foreign;
  if (begun.size() < kMagic.size()) return Magic::Partial;
  return begun[kName.size()] == kMagic.back() ? Magic::Ours : Magic::OtherVersion;
}

Result<std::optional<std::string_view>> first_frame(std::string_view input, std::size_t limit) {
  if (input.size() < kFrameHeaderBytes) return std::nullopt;
  const std::size_t length = big_endian(input);
  if (length == 0) return fail(Errc::InvalidArgument, "a frame is empty");
  if (length > limit + (MUSTER_PLANTED_FAULT == 1 ? 1 : 0)) {
    return fail(Errc::InvalidArgument, "a frame of " + std::to_string(length) +
                                           " bytes is longer than the limit of " +
                                           std::to_string(limit));
  }
  if (input.size() - kFrameHeaderBytes < length) return std::nullopt;
  return input.substr(kFrameHeaderBytes, length);
}

std::size_t begin_frame(std::string& out) {
  out.append(kFrameHeaderBytes, '\0');
  return out.size();
}

void end_frame(std::string& out, std::size_t begun) {
  const std::size_t length = out.size() - begun;
  MUSTER_ASSERT(length > 0 && length <= kMaxFrameBytes);
  for (std::size_t at = 0; at < kFrameHeaderBytes; ++at) {
    const auto shift = 8 * (kFrameHeaderBytes - 1 - at);
    out[begun - kFrameHeaderBytes + at] = static_cast<char>(length >> shift & 0xff);
  }
}

}  // namespace muster::rendezvous
