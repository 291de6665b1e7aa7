#include "launcher/surroundings/node_list.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace muster::launcher {

using Names = std::vector<std::string>;

TEST_CASE("a list of nodes is written in few characters", "[launcher][surroundings]") {
  struct Case {
    std::string text;
    Names names;
  };
  for (const auto& [text, names] : {
           Case{"h0", {"h0"}},
           Case{"login,h0", {"login", "h0"}},
           Case{"h[0-2]", {"h0", "h1", "h2"}},
           Case{"h[0]", {"h0"}},
           Case{"h[9-11]", {"h9", "h10", "h11"}},
           Case{"h[009-011]", {"h009", "h010", "h011"}},
           Case{"h[08-10,7]", {"h08", "h09", "h10", "h7"}},
           Case{"a[01-03,7],b-[1-2]c[3-4],login",
                {"a01", "a02", "a03", "a7", "b-1c3", "b-1c4", "b-2c3", "b-2c4", "login"}},
           Case{"r[0-1]n[0-1]-ib", {"r0n0-ib", "r0n1-ib", "r1n0-ib", "r1n1-ib"}},
           Case{"r[1,a[2-3]]", {"r1", "ra2", "ra3"}},
           Case{"[1-2]", {"1", "2"}},
           Case{"h[0-1].example.org", {"h0.example.org", "h1.example.org"}},
           Case{"h[a-b]", {"ha-b"}},
       }) {
    INFO(text);
    const auto parsed = parse_node_list(text);
    REQUIRE(parsed);
    CHECK(*parsed == names);
  }
}

TEST_CASE("a list of nodes that makes no sense is refused at its place",
          "[launcher][surroundings]") {
  struct Case {
    std::string text;
    std::string cause;
  };
  for (const auto& [text, cause] : {
           Case{"", "a name is missing at character 1"},
           Case{"a,", "a name is missing at character 3"},
           Case{",a", "a name is missing at character 1"},
           Case{"a[", "a name is missing at character 3"},
           Case{"a[]", "a name is missing at character 3"},
           Case{"a[1", "a ']' is missing at character 4"},
           Case{"a]", "']' without a '[' at character 2"},
           Case{"a[1]]", "']' without a '[' at character 5"},
           Case{"a[3-1]", "a range that runs backwards at character 6"},
           Case{"a[[[[[1]]]]]", "too many brackets in brackets at character 6"},
           Case{"a[0-65536]", "more than 65536 nodes at character 10"},
           Case{"a[0-999999999]", "more than 65536 nodes at character 14"},
           Case{"a[0-299]b[0-299]", "more than 65536 nodes at character 17"},
           Case{"a[0-65535],b", "more than 65536 nodes at character 13"},
           Case{std::string(200, 'a') + "[1]" + std::string(55, 'b'), "a name that is too long"},
       }) {
    INFO(text);
    const auto parsed = parse_node_list(text);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().message.find(" is no list of nodes: " + cause) != std::string::npos);
  }
  CHECK(parse_node_list("a[0-65535]")->size() == kMaxListed);
  CHECK(parse_node_list("a[0-255]b[0-255]")->size() == kMaxListed);
}

TEST_CASE("counts by node are written in few characters", "[launcher][surroundings]") {
  using Counts = std::vector<std::uint32_t>;
  CHECK(*parse_counts("4(x2),3") == Counts{4, 4, 3});
  CHECK(*parse_counts("1") == Counts{1});
  CHECK(*parse_counts("0,8(x1)") == Counts{0, 8});
  CHECK(parse_counts("1(x65536)")->size() == kMaxListed);
  for (const char* text : {"", ",", "4,", "4(x)", "4(x2", "4(2)", "(x2)", "4(x0)", "4(x2)3", "x",
                           "-1", "1(x65537)", "1(x65536),1", "4(x2),"}) {
    INFO(text);
    REQUIRE_FALSE(parse_counts(text));
    CHECK(parse_counts(text).error().message.find("no list of counts") != std::string::npos);
  }
}

}  // namespace muster::launcher
