// native_meet: workers without Python that meet under the launcher and add something up together.
//
//   muster --nproc-per-node 4 ./native_meet
//
// The launcher gives each worker its RANK, the WORLD_SIZE, and the address of a store that all of
// them share. A store maps keys to bytes; waiting for a key is how workers wait for each other.
// PyTorch workers use the same store: a Python process of the same job could read the keys that
// this program sets.

#include "base/endpoint.hpp"
#include "rendezvous/store_client/store_client.hpp"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

using muster::store_client::Store;
using muster::store_client::StoreClient;

namespace {

/// Ends the program with what went wrong. The launcher then stops the other workers.
[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "native_meet: %s\n", why.c_str());
  std::exit(EXIT_FAILURE);
}

/// The value of a call, or the end of the program.
template <class T>
T need(muster::Result<T> result) {
  if (!result) give_up(result.error().message);
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) give_up(std::string(name) + " is not set: start this program with muster");
  return value;
}

std::int64_t number_variable(const char* name, std::int64_t least, std::int64_t most) {
  const std::string text = variable(name);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < least || number > most) {
    give_up(std::string(name) + "='" + text + "' is not a number of " + std::to_string(least) +
            " to " + std::to_string(most));
  }
  return number;
}

std::string name_of_this_process() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return std::string(host) + "/" + std::to_string(::getpid());
}

}  // namespace

int main() {
  constexpr std::int64_t kMostWorkers = 100'000;
  const auto world_size = number_variable("WORLD_SIZE", 1, kMostWorkers);
  const auto rank = number_variable("RANK", 0, world_size - 1);
  const muster::Endpoint master{variable("MASTER_ADDR"), static_cast<std::uint16_t>(number_variable(
                                                             "MASTER_PORT", 1, 65535))};

  // Keys of our own below a prefix, so that they can't be mistaken for anybody else's.
  StoreClient client = need(StoreClient::connect(master));
  Store store = client.under("native_meet");

  // Say who we are, and wait until everybody has.
  need(store.set("worker/" + std::to_string(rank), name_of_this_process()));
  std::vector<std::string> keys;
  keys.reserve(static_cast<std::size_t>(world_size));
  for (std::int64_t other = 0; other < world_size; ++other)
    keys.push_back("worker/" + std::to_string(other));
  const std::vector<std::string> names = need(store.multi_get(keys));
  if (std::set(names.begin(), names.end()).size() != names.size()) {
    give_up("two ranks have the same process: is RANK the same in both?");
  }

  // Add up over all ranks: each adds its part, and reads the sum when the barrier says that all
  // have.
  const std::int64_t part = rank + 1;
  need(store.add("sum", part));
  need(store.barrier("all have added", world_size));
  const std::int64_t sum = need(store.add("sum", 0));
  const std::int64_t expected = world_size * (world_size + 1) / 2;
  if (sum != expected) {
    give_up("the sum over all ranks is " + std::to_string(sum) + " instead of " +
            std::to_string(expected));
  }

  std::printf("rank %lld of %lld: met all the others as %s, sum %lld\n",
              static_cast<long long>(rank), static_cast<long long>(world_size),
              names[static_cast<std::size_t>(rank)].c_str(), static_cast<long long>(sum));
  return EXIT_SUCCESS;
}
