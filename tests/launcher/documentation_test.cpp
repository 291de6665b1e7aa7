#include "launcher/flags.hpp"

#include <fstream>
#include <iterator>
#include <string>

#include <catch2/catch.hpp>

namespace muster::launcher {

TEST_CASE("the documentation has every flag and its variable", "[launcher][docs]") {
  std::ifstream file("../../docs/reference/flags.md");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  REQUIRE_FALSE(text.empty());
  const std::string later = "## Flags of torchrun that this version does not have";
  REQUIRE(text.find(later) != std::string::npos);
  for (const Flag& flag : flags()) {
    INFO(flag.name);
    const auto place = text.find(
        "\n| `" + (flag.letter == '\0' ? "" : "-" + std::string(1, flag.letter) + "`, `") +
        long_option(flag));
    if (flag.owner == Owner::NotYet) {
      CHECK(place == std::string::npos);
      CHECK(text.find("`" + long_option(flag) + "`", text.find(later)) != std::string::npos);
      continue;
    }
    REQUIRE(place != std::string::npos);
    const auto row = text.substr(place + 1, text.find('\n', place + 1) - place - 1);
    const auto variable = variable_name(flag);
    if (!variable.empty()) CHECK(row.find("`" + variable + "`") != std::string::npos);
  }
}

}  // namespace muster::launcher
