#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

/// One line of a case: bytes that went one way on one connection, or how the connection ended.
struct GoldenRecord {
  enum class Kind { Sent, Received, Closed, Nothing };
  Kind kind;
  int connection;
  std::string bytes;  ///< Of Sent and Received.
};

struct GoldenCase {
  std::string name;
  std::vector<GoldenRecord> records;
};

/// The cases between two headlines of golden.txt. They were recorded one after the other, and what
/// one leaves in the store the next ones see.
struct GoldenSection {
  std::string title;
  std::vector<GoldenCase> cases;
};

[[nodiscard]] std::vector<GoldenSection> read_golden_file();

/// What the recorded bytes don't show, but the replies depend on: see golden_setup.txt.
struct GoldenStep {
  std::string mode;  ///< detect, fixed or *.
  std::size_t before_record;
  std::string act;
  int connection;
  std::string bytes;
};
[[nodiscard]] std::map<std::string, std::vector<GoldenStep>> read_golden_setup();

/// Where this server answers otherwise: see golden_exceptions.txt.
struct GoldenException {
  std::vector<std::string> answers;  ///< For each Received, Closed or Nothing of the case, or `=`.
  std::string section;
};
/// By case and mode.
[[nodiscard]] std::map<std::pair<std::string, std::string>, GoldenException>
read_golden_exceptions();

[[nodiscard]] std::string from_hex(std::string_view hex);
[[nodiscard]] std::string to_hex(std::string_view bytes);
