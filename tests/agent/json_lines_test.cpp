#include "agent/run/json_lines.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

namespace muster::agent {
namespace json = boost::json;

TEST_CASE("a JSON line says who wrote what, where and when", "[agent][json]") {
  JsonFormat format("job 1");
  auto line = json::parse(format.own_line("info", "a \"b\"\n")).as_object();
  CHECK(line.at("stream") == "muster");
  CHECK(line.at("level") == "info");
  CHECK(line.at("message") == "a \"b\"\n");
  CHECK_FALSE(line.contains("node"));
  format.begin_round({.node = {3}, .attempt = 2});
  const auto text = format.worker_line({7}, "stderr", "bad \xff, good \xc3\xa9\x01");
  CHECK(text.ends_with("}\n"));
  CHECK(text.find('\n') == text.size() - 1);
  line = json::parse(text).as_object();
  CHECK(line.at("job") == "job 1");
  CHECK(line.at("node") == 3);
  CHECK(line.at("attempt") == 2);
  CHECK(line.at("rank") == 7);
  CHECK(line.at("stream") == "stderr");
  CHECK(line.at("message") == "bad \xef\xbf\xbd, good \xc3\xa9\x01");
  const std::string at(line.at("ts").as_string());
  CHECK(at.size() == std::string("2031-01-02T14:03:27.125042Z").size());
  CHECK(at[10] == 'T');
  CHECK(at[19] == '.');
}

}  // namespace muster::agent
