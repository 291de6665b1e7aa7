#include "base/text.hpp"

#include <catch2/catch.hpp>

using muster::count_of;
using muster::lines_of;
using muster::printable;
using muster::split;
using muster::to_utf8;
using Parts = std::vector<std::string_view>;

TEST_CASE("what is not UTF-8 becomes the replacement character, and nothing else changes",
          "[base][text]") {
  CHECK(to_utf8("plain\n\x1b[0m\x7f").compare("plain\n\x1b[0m\x7f") == 0);
  CHECK(to_utf8("na\xC3\xAFve \xE2\x82\xAC \xF0\x9F\x98\x80 \xC2\x85") ==
        "na\xC3\xAFve \xE2\x82\xAC \xF0\x9F\x98\x80 \xC2\x85");
  CHECK(to_utf8("a\xFF\xFE z") == "a\xEF\xBF\xBD\xEF\xBF\xBD z");
  CHECK(to_utf8("cut \xE2\x82") == "cut \xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(to_utf8("\xC0\xAF") == "\xEF\xBF\xBD\xEF\xBF\xBD");              // Too long.
  CHECK(to_utf8("\xED\xA0\x80").find('\xED') == std::string::npos);      // A surrogate.
  CHECK(to_utf8("\xF4\x90\x80\x80").find('\xF4') == std::string::npos);  // Beyond Unicode.
  CHECK(to_utf8(std::string("nul \0.", 6)) == std::string("nul \0.", 6));
}

TEST_CASE("control characters and bytes that are not UTF-8 are shown in hexadecimal",
          "[base][text]") {
  CHECK(printable("a\x1b[0m \x7f \xC2\x85 \xFF \xC3\xAF") ==
        "a\\x1b[0m \\x7f \\xc2\\x85 \\xff \xC3\xAF");
}

TEST_CASE("a text is cut at each separator, and a line needs no end", "[base][text]") {
  CHECK(split("a,,b,", ',') == Parts{"a", "", "b", ""});
  CHECK(split("", ',') == Parts{""});
  CHECK(lines_of("a\n\nb") == Parts{"a", "", "b"});
  CHECK(lines_of("a\n\n") == Parts{"a", ""});
  CHECK(lines_of("").empty());
}

TEST_CASE("one is singular, all else plural", "[base][text]") {
  CHECK(count_of(0, "node") == "0 nodes");
  CHECK(count_of(1, "process") == "1 process");
  CHECK(count_of(2, "process") == "2 processes");
}
