// What the launcher reads beside the command line: Slurm's lists of nodes and of counts, and the
// file of --config. Anything may be refused; what is taken keeps the limits, and reads the same
// when it is written out.

#include "base/assert.hpp"
#include "launcher/config_file.hpp"
#include "launcher/surroundings/node_list.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using namespace muster::launcher;

void check_lists(std::string_view text) {
  if (const auto counts = parse_counts(text)) {
    MUSTER_ASSERT(!counts->empty() && counts->size() <= kMaxListed);
  }
  const auto names = parse_node_list(text);
  if (!names) return;
  MUSTER_ASSERT(!names->empty() && names->size() <= kMaxListed);
  std::string written;
  for (const auto& name : *names) {
    MUSTER_ASSERT(!name.empty() && name.find_first_of("[],") == std::string::npos);
    written += (written.empty() ? "" : ",") + name;
  }
  const auto again = parse_node_list(written);
  MUSTER_ASSERT(again && *again == *names);
}

void check_config(std::string_view text) {
  const auto given = parse_config(text, "f");
  if (!given) {
    MUSTER_ASSERT(given.error().message.starts_with("f:"));
    return;
  }
  for (const auto& [name, value] : *given) MUSTER_ASSERT(value.origin.starts_with("f:"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  if (bytes[0] == 'N') {
    check_lists(text);
  } else {
    check_config(text);
  }
  return 0;
}
