// The attendance reads arbitrary bytes, as a server and as a client. An input is one byte that says
// whose frames they are (bit 0: a server's) and in pieces of how many bytes they come (the rest),
// then the bytes. What is taken must be within its limits, be written again to the same, and not
// depend on the pieces. make_frames_corpus.py writes the golden frames so.
#include "rendezvous/client/frames.hpp"
#include "rendezvous/client/wire.hpp"
#include "tests/rendezvous/client/same_frame.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace muster;
using namespace muster::rendezvous;

/// No limit of what is written, a text cut to its length, is met by a frame so short.
constexpr std::size_t kShort = 900;

/// Small, so that a length just beyond it is within reach.
constexpr std::size_t kLimit = 2048;

void fail(const char* what) {
  std::fprintf(stderr, "a frame was read wrongly: %s\n", what);
  std::abort();
}

std::size_t length_of(std::string_view header) {
  std::size_t length = 0;
  for (std::size_t at = 0; at < kFrameHeaderBytes; ++at) {
    length = length << 8 | static_cast<unsigned char>(header[at]);
  }
  return length;
}

/// The frames of a stream that comes in such pieces, until something is wrong with it.
std::vector<std::string> frames_of(std::string_view stream, std::size_t piece) {
  std::vector<std::string> frames;
  std::string in;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    in += stream.substr(at, piece);
    for (;;) {
      const auto body = first_frame(in, kLimit);
      if (!body) {
        const auto length = length_of(in);
        if (length > 0 && length <= kLimit) fail("a length within the limit was refused");
        return frames;
      }
      if (!*body) break;
      if ((*body)->empty() || (*body)->size() > kLimit) fail("it is beyond the limit");
      frames.emplace_back(**body);
      in.erase(0, kFrameHeaderBytes + frames.back().size());
    }
    if (in.size() >= kFrameHeaderBytes && length_of(in) > kLimit) fail("it is waited for");
  }
  return frames;
}

template <class Frame, class Decode>
void check(const std::string& body, Decode decode) {
  const auto read = decode(body);
  if (!read || !*read) return;
  const Frame& frame = **read;
  std::string written;
  encode(frame, written);
  const auto again = first_frame(written, kMaxFrameBytes);
  if (!again || !*again) fail("it is written as no frame");
  const auto reread = decode(**again);
  if (!reread || !*reread) fail("it can't be read again");
  if (body.size() <= kShort && !are_same(frame, **reread)) fail("it is not the same again");
  std::string rewritten;
  encode(**reread, rewritten);
  if (rewritten != written) fail("it is written otherwise again");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const bool is_server = (bytes[0] & 1) != 0;
  const std::size_t piece = std::max<std::size_t>(1, bytes[0] >> 1);
  const std::string_view stream(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  (void)compare_magic(stream);
  const auto frames = frames_of(stream, piece);
  if (frames != frames_of(stream, std::max<std::size_t>(1, stream.size()))) {
    fail("it depends on the pieces");
  }
  for (const auto& body : frames) {
    if (is_server) {
      check<ServerFrame>(body, decode_server_frame);
    } else {
      check<ClientFrame>(body, decode_client_frame);
    }
  }
  return 0;
}
