#include "tests/rendezvous/core/random_command.hpp"

#include <array>

namespace kv = muster::rendezvous::kv;
using namespace std::string_view_literals;

namespace {

constexpr std::array kKeys{"a"sv, "b"sv, "c"sv, ""sv, "a\0"sv};
constexpr std::array kValues{""sv,
                             "0"sv,
                             "1"sv,
                             "-3"sv,
                             "+7"sv,
                             "+-7"sv,
                             " 9"sv,
                             "12abc"sv,
                             "0x10"sv,
                             "abc"sv,
                             "5\0006"sv,
                             "9223372036854775807"sv,
                             "-9223372036854775808"sv,
                             "9223372036854775808"sv,
                             "a value that is too long to be kept inside a string"sv};
constexpr std::array<std::int64_t, 6> kDeltas{0, 1, -1, 5, INT64_MAX, INT64_MIN};
constexpr std::array<std::int64_t, 5> kWorldSizes{-1, 0, 1, 2, 3};

}  // namespace

std::string_view RandomCommand::key() { return kKeys[draw(kKeys.size())]; }
std::string_view RandomCommand::value() { return kValues[draw(kValues.size())]; }

std::vector<std::string_view> RandomCommand::keys() {
  std::vector<std::string_view> result(draw(4));
  for (auto& each : result) each = key();
  return result;
}

const kv::Command& RandomCommand::next() {
  switch (draw(20)) {
    case 0:
      return command_ = kv::Set{key(), value()};
    case 1:
      return command_ = kv::CompareSet{key(), value(), value()};
    case 2:
      return command_ = kv::Get{key()};
    case 3:
      return command_ = kv::Add{key(), kDeltas[draw(kDeltas.size())]};
    case 4:
      keys_ = keys();
      return command_ = kv::Check{keys_};
    case 5:
    case 6:
      keys_ = keys();
      return command_ = kv::Wait{keys_};
    case 7:
      return command_ = kv::CountKeys{};
    case 8:
    case 9:
      return command_ = kv::Delete{key()};
    case 10:
      return command_ = kv::Append{key(), value()};
    case 11:
      keys_ = keys();
      return command_ = kv::MultiGet{keys_};
    case 12:
      pairs_.clear();
      for (const auto each : keys()) pairs_.emplace_back(each, value());
      return command_ = kv::MultiSet{pairs_};
    case 13:
      return command_ = kv::CancelWait{};
    case 14:
      return command_ = kv::Ping{static_cast<std::uint32_t>(draw(1000))};
    case 15:
      return command_ = kv::QueuePush{key(), value()};
    case 16:
      return command_ = kv::QueuePop{key()};
    case 17:
      return command_ = kv::QueueLength{key()};
    case 18:
      return command_ = kv::ListKeys{};
    default:
      return command_ = kv::Barrier{key(), kWorldSizes[draw(kWorldSizes.size())]};
  }
}
