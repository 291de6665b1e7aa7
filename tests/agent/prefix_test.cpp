#include "agent/core/prefix.hpp"

#include <catch2/catch.hpp>

namespace muster::agent {

TEST_CASE("a prefix says of whom a line is, and when it came", "[agent][lines]") {
  const Prefix::Facts facts{.role = "trainer", .local_rank = "1", .rank = "9", .host = "h0"};
  const auto text = [&facts](std::string_view of) { return Prefix(of, facts).text("12:00"); };
  CHECK(text("[${role_name}${local_rank}]:") == "[trainer1]:");
  CHECK(text("$hostname/$rank ") == "h0/9 ");
  CHECK(text("$time ${time}|") == "12:00 12:00|");
  CHECK(text("$$rank $unknown ${also} ${rank $ 5$") == "$rank $unknown ${also} ${rank $ 5$");
  CHECK(Prefix("${time}", facts).has_time());
  CHECK_FALSE(Prefix("$$time ${rank}", facts).has_time());
}

}  // namespace muster::agent
