#include "base/rank_set.hpp"

#include <catch2/catch.hpp>

using muster::RankSet;

TEST_CASE("a set of ranks draws neighbours together", "[base][ranks]") {
  RankSet set;
  set.insert(5, 7);
  set.insert(0, 0);
  set.insert(3, 3);
  CHECK(set.text() == "0,3,5-7");
  set.insert(4, 4);
  CHECK(set.text() == "0,3-7");
  set.insert(1, 5);
  CHECK(set.text() == "0-7");
  CHECK(set.text(8) == "8-15");
  set.insert(4294967295U, 4294967295U);
  CHECK(set.contains(7));
  CHECK_FALSE(set.contains(8));
  CHECK(set.contains(4294967295U));
  CHECK(set.highest() == 4294967295U);
}
