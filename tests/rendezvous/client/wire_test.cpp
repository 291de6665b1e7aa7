#include "muster/v1/rendezvous.pb.h"
#include "rendezvous/client/frames.hpp"
#include "tests/rendezvous/client/same_frame.hpp"
#include "tests/rendezvous/client/sample_frames.hpp"

#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <random>

#include <catch2/catch.hpp>

using namespace muster;
using namespace muster::rendezvous;

namespace {

constexpr std::uint64_t kGoldenSeed = 1;

template <class Frame>
std::string encoded(const Frame& frame) {
  std::string bytes;
  encode(frame, bytes);
  return bytes;
}

std::string_view body_of(std::string_view frame) {
  const auto body = first_frame(frame, kMaxFrameBytes);
  REQUIRE(body);
  REQUIRE(*body);
  REQUIRE((*body)->size() + kFrameHeaderBytes == frame.size());
  return **body;
}

ClientFrame decoded_client(std::string_view frame) {
  auto result = decode_client_frame(body_of(frame));
  if (!result) INFO(result.error().message);
  REQUIRE(result);
  REQUIRE(*result);
  return **result;
}

ServerFrame decoded_server(std::string_view frame) {
  auto result = decode_server_frame(body_of(frame));
  REQUIRE(result);
  REQUIRE(*result);
  return **result;
}

std::string in_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char each : bytes) {
    text += kDigits[static_cast<unsigned char>(each) >> 4];
    text += kDigits[static_cast<unsigned char>(each) & 15];
  }
  return text;
}

std::string from_hex(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at + 1 < text.size(); at += 2) {
    bytes += static_cast<char>(std::stoi(std::string(text.substr(at, 2)), nullptr, 16));
  }
  return bytes;
}

std::map<std::string, std::string> golden() {
  std::map<std::string, std::string> lines;
  std::ifstream file("frames.golden");
  std::string name;
  std::string hex;
  while (file >> name >> hex) lines[name] = from_hex(hex);
  return lines;
}

std::string client_error(const std::function<void(v1::ClientFrame&)>& fill) {
  v1::ClientFrame frame;
  fill(frame);
  const auto result = decode_client_frame(frame.SerializeAsString());
  return result ? "taken" : result.error().message;
}

std::string server_error(const std::function<void(v1::ServerFrame&)>& fill) {
  v1::ServerFrame frame;
  fill(frame);
  const auto result = decode_server_frame(frame.SerializeAsString());
  return result ? "taken" : result.error().message;
}

v1::Hello* good_hello(v1::ClientFrame& frame) {
  auto* const hello = frame.mutable_greeting()->mutable_hello();
  hello->set_incarnation("x");
  hello->set_slots(1);
  return hello;
}

}  // namespace

TEST_CASE("what was encoded is decoded to the same, field by field", "[wire]") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SampleFrames samples(seed);
    for (const auto& [name, frame] : samples.client()) {
      INFO("seed " << seed << " " << name);
      CHECK(are_same(decoded_client(encoded(frame)), frame));
    }
    for (const auto& [name, frame] : samples.server()) {
      INFO("seed " << seed << " " << name);
      CHECK(are_same(decoded_server(encoded(frame)), frame));
    }
  }
}

TEST_CASE("the bytes of each kind of frame are those of earlier versions", "[wire]") {
  const auto lines = golden();
  SampleFrames samples(kGoldenSeed);
  std::size_t kinds = 0;
  for (const auto& [name, frame] : samples.client()) {
    INFO(name);
    REQUIRE(lines.contains("client." + name));
    CHECK(encoded(frame) == lines.at("client." + name));
    CHECK(are_same(decoded_client(lines.at("client." + name)), frame));
    ++kinds;
  }
  for (const auto& [name, frame] : samples.server()) {
    INFO(name);
    REQUIRE(lines.contains("server." + name));
    CHECK(encoded(frame) == lines.at("server." + name));
    CHECK(are_same(decoded_server(lines.at("server." + name)), frame));
    ++kinds;
  }
  CHECK(kinds == lines.size());
}

// `rendezvous_client_test "[.record]" > frames.golden`, when a kind is added. A line that changes
// is a version of the protocol that no other understands.
TEST_CASE("record golden frames", "[.record]") {
  SampleFrames samples(kGoldenSeed);
  for (const auto& [name, frame] : samples.client()) {
    std::cout << "client." << name << ' ' << in_hex(encoded(frame)) << '\n';
  }
  for (const auto& [name, frame] : samples.server()) {
    std::cout << "server." << name << ' ' << in_hex(encoded(frame)) << '\n';
  }
}

TEST_CASE("what a newer peer adds is skipped", "[wire]") {
  // Field 100 of a Ping, a varint; then a kind that nobody knows; then an order.
  const auto ping = decode_client_frame(std::string("\x22\x05\x08\x07\xa0\x06\x01", 7));
  REQUIRE(ping);
  REQUIRE(*ping);
  CHECK(std::get<Ping>(std::get<AgentMessage>(**ping)).number == 7);
  const auto kind = decode_client_frame(std::string("\xa2\x06\x02\x08\x01", 5));
  REQUIRE(kind);
  CHECK_FALSE(*kind);
  const auto order = decode_server_frame(std::string("\x32\x05\x08\x07\xa2\x06\x00", 7));
  REQUIRE(order);
  CHECK_FALSE(*order);
}

TEST_CASE("a cause that a newer peer knows is a failure all the same", "[wire]") {
  v1::ClientFrame frame;
  frame.mutable_failed()->mutable_failure()->set_cause(static_cast<v1::Cause>(99));
  const auto result = decode_client_frame(frame.SerializeAsString());
  REQUIRE(result);
  const auto message = std::get<AgentMessage>(**result);
  CHECK(std::get<Failed>(std::get<Report>(message)).failure.cause == Cause::WorkerError);
}

TEST_CASE("a setting that this version does not know is kept by name", "[wire]") {
  v1::ClientFrame frame;
  auto* const setting = good_hello(frame)->add_settings();
  setting->set_name("gears");
  setting->set_value("5");
  const auto result = decode_client_frame(frame.SerializeAsString());
  REQUIRE(result);
  const auto& others = std::get<Greeting>(**result).hello.settings.others;
  CHECK(others == std::map<std::string, std::string>{{"gears", "5"}});
}

TEST_CASE("what breaks a limit is refused, and the field is named", "[wire]") {
  const std::string long_name(kMaxName + 1, 'x');
  const std::string long_text(kMaxText + 1, 'x');
  CHECK(client_error([&](auto& f) { good_hello(f); }) == "taken");
  CHECK(client_error([&](auto& f) { good_hello(f)->set_job(long_name); }) ==
        "hello.job is longer than the limit of 512 bytes");
  CHECK(client_error([&](auto& f) { good_hello(f)->set_incarnation(""); }) ==
        "hello.incarnation is empty");
  CHECK(client_error([&](auto& f) { good_hello(f)->set_slots(0); }) ==
        "hello.slots is 0, which is not from 1 to 4096");
  CHECK(client_error([&](auto& f) { good_hello(f)->set_slots(5000); }) ==
        "hello.slots is 5000, which is not from 1 to 4096");
  CHECK(client_error([&](auto& f) { good_hello(f)->mutable_store()->set_port(70000); }) ==
        "hello.store is 70000, which is not from 0 to 65535");
  CHECK(client_error([&](auto& f) {
          auto* const hello = good_hello(f);
          for (int count = 0; count < 257; ++count) hello->add_addresses("10.0.0.1");
        }) == "hello.addresses is a list of more than 256");
  CHECK(client_error([&](auto& f) {
          auto* const setting = good_hello(f)->add_settings();
          setting->set_name("lease");
          setting->set_value("-1s");
        }) == "setting 'lease' can't have the value '-1s'");
  for (const char* const bad :
       {"", "s", "1", "1.s", "1.0000000001s", "99999999999s", "nan", "1e3s"}) {
    INFO(bad);
    CHECK(client_error([&](auto& f) {
            auto* const setting = good_hello(f)->add_settings();
            setting->set_name("join-timeout");
            setting->set_value(bad);
          }) == std::string("setting 'join-timeout' can't have the value '") + bad + "'");
  }
  CHECK(client_error([&](auto& f) {
          good_hello(f)->mutable_held()->mutable_highest()->set_epoch(UINT64_MAX);
        }) == "round.epoch is 18446744073709551615, which is not from 0 to 9223372036854775807");
  CHECK(client_error([&](auto& f) {
          f.mutable_parting()->mutable_farewell()->mutable_round()->set_number(UINT64_MAX);
        }) == "round.number is 18446744073709551615, which is not from 0 to 4611686018427387903");
  CHECK(client_error([&](auto& f) {
          auto* const sizes = good_hello(f)->mutable_held()->mutable_kept()->mutable_sizes();
          sizes->set_min(3);
          sizes->set_max(2);
        }) == "keep.sizes.min is 3, which is not from 1 to 2");
  CHECK(client_error([&](auto& f) { f.mutable_open()->set_nonce("short"); }) ==
        "open.nonce is shorter than 16");
  CHECK(client_error([&](auto& f) { f.mutable_leaving()->set_signal(-1); }) ==
        "leaving.signal is -1, which is not from 0 to 127");
  CHECK(client_error([&](auto& f) { f.mutable_unreachable()->set_detail(long_text); }) ==
        "unreachable.detail is longer than the limit of 65536 bytes");
  CHECK(client_error([&](auto& f) { f.mutable_notice()->mutable_left()->set_seconds(-1); }) ==
        "notice.left is -1, which is not from 0 to 3155760000");
  CHECK(client_error([&](auto& f) { f.mutable_notice()->mutable_left()->set_nanos(-1); }) ==
        "notice.left is -1, which is not from 0 to 999999999");
  CHECK(client_error([&](auto& f) {
          f.mutable_notice()->mutable_left()->set_seconds(INT64_MAX);
        }) == "notice.left is 9223372036854775807, which is not from 0 to 3155760000");
  CHECK(server_error([&](auto& f) {
          f.mutable_directive()->mutable_verdict()->set_exit_code(256);
        }) == "verdict.exit_code is 256, which is not from 0 to 255");
  CHECK(server_error([&](auto& f) {
          auto* const verdict = f.mutable_directive()->mutable_verdict();
          for (int count = 0; count < 65; ++count) verdict->add_others();
        }) == "verdict.others is a list of more than 64");
}

TEST_CASE("bytes that are no message are refused", "[wire]") {
  CHECK_FALSE(decode_client_frame("\xff\xff\xff\xff"));
  CHECK_FALSE(decode_client_frame("GET / HTTP/1.1"));
  CHECK_FALSE(decode_server_frame("\x22\x7f"));  // Longer than what is there.
  std::mt19937_64 random(7);
  for (int count = 0; count < 20000; ++count) {
    std::string bytes(1 + random() % 64, '\0');
    for (char& each : bytes) each = static_cast<char>(random());
    (void)decode_client_frame(bytes);  // Whatever they are: no fault.
    (void)decode_server_frame(bytes);
  }
}

TEST_CASE("the longest frames that can be written can be read", "[wire]") {
  WorkerFailure failure;
  failure.node.assign(10000, 'n');
  failure.status = ExitStatus{.code = 255, .signal = 127, .core_dumped = true};
  failure.detail.assign(100000, 'd');
  failure.traceback.assign(100000, 't');
  failure.traceback += "the end";
  failure.stderr_lines.assign(300, std::string(5000, 's'));
  failure.stderr_lines.back() = "last";
  failure.log_file.assign(10000, 'l');
  failure.rank = {UINT32_MAX};
  Verdict verdict;
  verdict.summary.assign(1000000, 's');
  verdict.cause = failure;
  verdict.others.assign(70, failure);
  verdict.victims.assign(100000, {{UINT32_MAX}, *failure.status});
  const auto told = decoded_server(encoded(ServerFrame(ServerMessage(Directive{1, {}, verdict}))));
  const auto& heard = std::get<Verdict>(std::get<Directive>(std::get<ServerMessage>(told)).order);
  CHECK(heard.cause->traceback.ends_with("the end"));
  CHECK(heard.cause->stderr_lines.back() == "last");
  CHECK(heard.others.size() == kMaxOthers);

  Hello hello;
  hello.incarnation = {std::string(64, 'i')};
  hello.addresses.assign(10000, std::string(200, 'a'));
  hello.held.gone.assign(65536, {std::string(64, 'g')});
  hello.held.excluded.assign(65536, std::string(500, 'e'));
  hello.held.verdict = verdict;
  hello.held.failures.assign(20, failure);
  hello.held.victims = verdict.victims;
  const auto offered = decoded_client(encoded(ClientFrame(Greeting{hello, "p"})));
  CHECK(std::get<Greeting>(offered).hello.held.gone.size() > 4000);

  Stop stop;
  stop.reason.assign(1000000, 'r');
  stop.gone.assign(65536, {std::string(64, 'g')});
  (void)decoded_server(encoded(ServerFrame(ServerMessage(Directive{1, {}, stop}))));
  Assignment assignment;
  assignment.admitted.assign(100000, std::string(39, 'a'));
  assignment.excluded.assign(65536, std::string(500, 'e'));
  (void)decoded_server(encoded(ServerFrame(ServerMessage(Directive{1, {}, assignment}))));
  (void)decoded_client(encoded(ClientFrame(AgentMessage(Report(Failed{{}, failure, 1})))));
}

TEST_CASE("a name that is too long is refused by its field, not sent for ever", "[wire]") {
  Hello hello;
  hello.incarnation = {"i"};
  hello.job.assign(5000000, 'j');
  const auto bytes = encoded(ClientFrame(Greeting{hello, ""}));
  const auto result = decode_client_frame(body_of(bytes));
  REQUIRE_FALSE(result);
  CHECK(result.error().message == "hello.job is longer than the limit of 512 bytes");
}

TEST_CASE("frames are cut out of a stream, however it comes in pieces", "[frames]") {
  SampleFrames samples(3);
  std::string stream;
  std::vector<std::string> frames;
  for (const auto& [name, frame] : samples.client()) {
    frames.push_back(encoded(frame));
    stream += frames.back();
  }
  std::string in;
  std::size_t next = 0;
  std::mt19937 random(1);
  for (std::size_t at = 0; at < stream.size();) {
    const auto piece = 1 + random() % 200;
    in.append(stream, at, piece);
    at += piece;
    for (;;) {
      const auto body = first_frame(in, kMaxFrameBytes);
      REQUIRE(body);
      if (!*body) break;
      CHECK(**body == std::string_view(frames[next]).substr(kFrameHeaderBytes));
      in.erase(0, kFrameHeaderBytes + (*body)->size());
      ++next;
    }
  }
  CHECK(next == frames.size());
  CHECK(in.empty());
}

TEST_CASE("a length is believed only within the limit", "[frames]") {
  CHECK(first_frame(std::string("\0\0\0\0", 4), 100).error().message == "a frame is empty");
  CHECK(first_frame(std::string("\0\0\0\x65", 4), 100).error().message ==
        "a frame of 101 bytes is longer than the limit of 100");
  CHECK_FALSE(first_frame("\xff\xff\xff\xff", kMaxFrameBytes));
  CHECK_FALSE(*first_frame(std::string("\0\0\0\x64", 4), 100));
  CHECK_FALSE(*first_frame(std::string("\0\0\0", 3), 100));
  CHECK_FALSE(*first_frame("", 100));
}

TEST_CASE("the magic is told from another version's and from anything else", "[frames]") {
  CHECK(compare_magic("") == Magic::Partial);
  CHECK(compare_magic("\xf5MUS") == Magic::Partial);
  CHECK(compare_magic("\xf5MUSTER") == Magic::Partial);
  CHECK(compare_magic(std::string(kMagic) + "more") == Magic::Ours);
  CHECK(compare_magic("\xf5MUSTER\x02") == Magic::OtherVersion);
  CHECK(compare_magic("\xf5MUSTARD") == Magic::Foreign);
  CHECK(compare_magic("SSH-2.0") == Magic::Foreign);
}
