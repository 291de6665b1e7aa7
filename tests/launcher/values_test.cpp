#include "launcher/values.hpp"

#include "launcher/machine.hpp"
#include "launcher/text.hpp"
#include "tests/launcher/temporary_folder.hpp"

#include <string>

#include <catch2/catch.hpp>

namespace muster::launcher {

using namespace std::chrono_literals;

TEST_CASE("integers are Python's", "[launcher][values]") {
  CHECK(parse_integer("0") == 0);
  CHECK(parse_integer("-0") == 0);
  CHECK(parse_integer(" \t1\n") == 1);
  CHECK(parse_integer("+2") == 2);
  CHECK(parse_integer("-3") == -3);
  CHECK(parse_integer("1_000_000") == 1000000);
  CHECK(parse_integer("007") == 7);
  CHECK(parse_integer("9223372036854775807") == 9223372036854775807);
  for (const char* text : {"", " ", "+", "-", "+-1", "-+1", "--1", "1 2", "1__0", "_1", "1_",
                           "0x10", "1.5", "1e3", "one", "9223372036854775808", "- 1", "1_-2"}) {
    INFO(text);
    CHECK_FALSE(parse_integer(text));
  }
}

TEST_CASE("numbers are Python's", "[launcher][values]") {
  CHECK(parse_number("0.1") == 0.1);
  CHECK(parse_number(" +.5 ") == 0.5);
  CHECK(parse_number("1e-3") == 0.001);
  CHECK(parse_number("1_0.5") == 10.5);
  for (const char* text : {"", "x", "1..2", "0x1", "1_.5", "1,5"}) {
    INFO(text);
    CHECK_FALSE(parse_number(text));
  }
}

TEST_CASE("a time is an integer with a unit, from nothing to a year", "[launcher][values]") {
  CHECK(parse_time("0") == 0ns);
  CHECK(parse_time("8760h") == kMaxTime);
  CHECK(parse_time("1_000ms") == 1s);
  for (const char* text : {"", "s", "ms", "-1", "-1s", "1.5s", "1 s", "1d", "1us", "8761h", "1S",
                           "9223372036854775807", "31536001"}) {
    INFO(text);
    CHECK_FALSE(parse_time(text));
  }
}

TEST_CASE("a map of streams names each rank once at most", "[launcher][values]") {
  CHECK(parse_stream_map("3")->everyone == Streams::Both);
  CHECK(parse_stream_map("0:1,0:3")->named == std::map<LocalRank, Streams>{{{0}, Streams::Both}});
  CHECK(parse_stream_map("65535:2")->of({65535}) == Streams::Err);
  for (const char* text : {"", "4", "-1", "0:", ":1", "0:4", "0:1,", ",0:1", "0:1,,1:1", "0:1:1",
                           "a:1", "0:1;1:1", " 0:1", "+1:1", "1_0:1", "65536:1", "00"}) {
    INFO(text);
    CHECK_FALSE(parse_stream_map(text));
  }
}

TEST_CASE("what a message repeats fits on a terminal's line", "[launcher][text]") {
  CHECK(in_quotes("plain") == "'plain'");
  CHECK(in_quotes("a\nb\x1b[31m\x7f") == "'a\\x0ab\\x1b[31m\\x7f'");
  CHECK(in_quotes("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80") ==
        "'\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80'");
  CHECK(in_quotes("\xc2\x9b") == "'\\xc2\\x9b'");  // A control character of the upper half.
  CHECK(in_quotes("\xc3") == "'\\xc3'");           // Cut short.
  CHECK(in_quotes("\xc0\xaf") == "'\\xc0\\xaf'");  // Too long a form.
  CHECK(in_quotes("\xed\xa0\x80") == "'\\xed\\xa0\\x80'");  // A surrogate.
  CHECK(in_quotes(std::string(1000, 'x')) == "'" + std::string(kMaxQuoted, 'x') + "'...");
}

TEST_CASE("the distance of two words counts slips", "[launcher][text]") {
  CHECK(edit_distance("tee", "tee") == 0);
  CHECK(edit_distance("", "tee") == 3);
  CHECK(edit_distance("etee", "tee") == 1);
  CHECK(edit_distance("tede", "teed") == 1);
  CHECK(edit_distance("role", "tee") == 3);
}

TEST_CASE("only numbered device files are GPUs", "[launcher][machine]") {
  const TemporaryFolder folder;
  for (const char* name :
       {"nvidia0", "nvidia1", "nvidia15", "nvidiactl", "nvidia-uvm", "nvidia", "null"}) {
    folder.write(name, "");
  }
  CHECK(count_nvidia_devices(folder.path()) == 3);
  CHECK(count_nvidia_devices(folder.path() / "missing") == 0);
  CHECK(this_machine().cpus() >= 1);
}

}  // namespace muster::launcher
