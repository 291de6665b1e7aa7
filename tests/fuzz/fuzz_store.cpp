// Several clients talk to the store's decoder and core; every byte that they get back is compared
// with what the reference says. An input is one byte for the server's mode (the dialect fixed to A
// to G, else detected), then pieces:
//   client and act (bits 0-1, 2-3)  size (2 bytes)  so many bytes, fewer at the end of the input
// make_store_corpus.py writes the golden traces in this form.
#include "tests/rendezvous/store/store_oracle.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr std::uint8_t kDialects = 7;
constexpr std::size_t kPieceHead = 3;
constexpr unsigned kActSettle = 1;  // 0, and any other, is arrival.
constexpr unsigned kActLeave = 2;

void expect_none(const std::string& difference) {
  if (difference.empty()) return;
  std::fprintf(stderr, "the store and its reference differ: %s\n", difference.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t mode = bytes[0] % (kDialects + 1);
  std::optional<muster::store::Dialect> dialect;
  if (mode < kDialects) dialect = static_cast<muster::store::Dialect>(mode);
  StoreOracle oracle(dialect);

  std::string_view rest(reinterpret_cast<const char*>(bytes + 1), size - 1);
  while (rest.size() >= kPieceHead) {
    const auto head = static_cast<std::uint8_t>(rest[0]);
    const std::size_t length =
        static_cast<std::uint8_t>(rest[1]) + 256U * static_cast<std::uint8_t>(rest[2]);
    const std::size_t client = (head & 3U) % StoreOracle::kClients;
    const unsigned act = head >> 2U & 3U;
    const auto piece = rest.substr(kPieceHead, length);
    rest.remove_prefix(kPieceHead + piece.size());
    if (act == kActSettle) {
      expect_none(oracle.settle(client));
    } else if (act == kActLeave) {
      expect_none(oracle.leave(client));
    } else {
      expect_none(oracle.arrive(client, piece));
    }
  }
  return 0;
}
