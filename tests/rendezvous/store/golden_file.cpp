#include "tests/rendezvous/store/golden_file.hpp"

#include <fstream>
#include <sstream>
#include <string_view>

#include <catch2/catch.hpp>

namespace {

std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, separator);) fields.push_back(field);
  return fields;
}

/// The lines of a file that hold tab-separated fields.
std::vector<std::vector<std::string>> read_table(const char* file) {
  std::ifstream in(file);
  REQUIRE(in);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && !line.starts_with('#')) rows.push_back(split(line, '\t'));
  }
  return rows;
}

GoldenRecord record_of(const std::vector<std::string>& fields) {
  GoldenRecord record{
      .kind = GoldenRecord::Kind::Sent, .connection = std::stoi(fields.at(3)), .bytes = {}};
  const std::string& what = fields.at(2);
  if (fields.at(1) == "S>C") record.kind = GoldenRecord::Kind::Received;
  if (what == "EOF" || what == "RST") {
    record.kind = GoldenRecord::Kind::Closed;
  } else if (what == "NONE") {
    record.kind = GoldenRecord::Kind::Nothing;
  } else {
    record.bytes = from_hex(what);
  }
  return record;
}

}  // namespace

std::vector<GoldenSection> read_golden_file() {
  std::ifstream in("golden.txt");
  REQUIRE(in);
  std::vector<GoldenSection> sections;
  for (std::string line; std::getline(in, line);) {
    // A headline of two lines is one section.
    if (line.starts_with("# ===") && (sections.empty() || !sections.back().cases.empty())) {
      sections.push_back({line, {}});
    }
    if (line.empty() || line.starts_with('#')) continue;
    const auto fields = split(line, '\t');
    auto& cases = sections.back().cases;
    if (cases.empty() || cases.back().name != fields.at(0)) cases.push_back({fields.at(0), {}});
    cases.back().records.push_back(record_of(fields));
  }
  return sections;
}

std::map<std::string, std::vector<GoldenStep>> read_golden_setup() {
  std::map<std::string, std::vector<GoldenStep>> steps;
  for (const auto& row : read_table("golden_setup.txt")) {
    steps[row.at(0)].push_back({.mode = row.at(1),
                                .before_record = std::stoul(row.at(2)),
                                .act = row.at(3),
                                .connection = std::stoi(row.at(4)),
                                .bytes = row.size() > 5 ? from_hex(row[5]) : ""});
  }
  return steps;
}

std::map<std::pair<std::string, std::string>, GoldenException> read_golden_exceptions() {
  std::map<std::pair<std::string, std::string>, GoldenException> exceptions;
  for (const auto& row : read_table("golden_exceptions.txt")) {
    const bool is_new = exceptions
                            .emplace(std::pair(row.at(0), row.at(1)),
                                     GoldenException{split(row.at(2), ','), row.at(3)})
                            .second;
    INFO("exception " << row.at(0) << " " << row.at(1) << " stands twice");
    REQUIRE(is_new);
  }
  return exceptions;
}

std::string from_hex(std::string_view hex) {
  std::string bytes;
  REQUIRE(hex.size() % 2 == 0);
  for (std::size_t at = 0; at < hex.size(); at += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(at, 2)), nullptr, 16)));
  }
  return bytes;
}

std::string to_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const char each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}
