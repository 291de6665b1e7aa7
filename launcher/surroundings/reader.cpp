#include "launcher/surroundings/family.hpp"
#include "launcher/surroundings/node_list.hpp"
#include "launcher/text.hpp"
#include "launcher/values.hpp"

#include <array>
#include <limits>
#include <utility>

namespace muster::launcher {
namespace {

std::string first_word(std::string_view text) {
  const auto word = trimmed(text);
  return std::string(word.substr(0, word.find_first_of(" \t\r\n")));
}

/// Where schedulers list an allocation's machines, and how: Slurm's sbatch(1), LSF's environment
/// variable reference, PBS's qsub(1).
enum class Style { SlurmList, Words, FileOfLines };
struct HostVariable {
  std::string_view variable;
  Style style;
};
constexpr std::array kHostVariables{
    HostVariable{"SLURM_JOB_NODELIST", Style::SlurmList},
    HostVariable{"LSB_MCPU_HOSTS", Style::Words},
    HostVariable{"LSB_HOSTS", Style::Words},
    HostVariable{"PBS_NODEFILE", Style::FileOfLines},
};

}  // namespace

bool Reader::has(std::string_view variable) const {
  return value_of(environment_, std::string(variable)).has_value();
}

std::optional<Told<std::string>> Reader::text(std::string_view variable) const {
  auto value = value_of(environment_, std::string(variable));
  if (!value) return std::nullopt;
  return Told<std::string>{*std::move(value), std::string(variable)};
}

std::optional<Told<std::uint32_t>> Reader::number(std::string_view variable) {
  const auto told = text(variable);
  if (!told) return std::nullopt;
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  const auto number = parse_integer(told->value);
  if (!number || *number < 0 || *number > kMost) {
    wrong(told->origin + ": " + in_quotes(told->value) + " is no number from 0 to " +
          std::to_string(kMost));
    return std::nullopt;
  }
  return Told<std::uint32_t>{static_cast<std::uint32_t>(*number), told->origin};
}

std::optional<Told<std::uint16_t>> Reader::port(std::string_view variable) {
  const auto told = number(variable);
  if (!told) return std::nullopt;
  if (told->value == 0 || told->value > std::numeric_limits<std::uint16_t>::max()) {
    wrong(told->origin + ": " + std::to_string(told->value) + " is no port from 1 to 65535");
    return std::nullopt;
  }
  return Told<std::uint16_t>{static_cast<std::uint16_t>(told->value), told->origin};
}

std::vector<std::string> Reader::node_list(std::string_view variable) {
  const auto told = text(variable);
  if (!told) return {};
  auto names = parse_node_list(told->value);
  if (names) return *std::move(names);
  wrong(told->origin + ": " + names.error().message);
  return {};
}

std::vector<std::uint32_t> Reader::counts(std::string_view variable) {
  const auto told = text(variable);
  if (!told) return {};
  auto counts = parse_counts(told->value);
  if (counts) return *std::move(counts);
  wrong(told->origin + ": " + counts.error().message);
  return {};
}

std::string Reader::file(const std::string& path) const {
  const auto text = read_file_ ? read_file_(path) : Result<std::string>();
  return text.value_or("");
}

std::optional<Told<std::string>> Reader::first_allocated_host() {
  for (const auto& [variable, style] : kHostVariables) {
    const auto told = text(variable);
    if (!told) continue;
    std::string first;
    switch (style) {
      case Style::SlurmList: {
        const auto names = node_list(variable);
        if (!names.empty()) first = names.front();
        break;
      }
      case Style::Words:
        first = first_word(told->value);
        break;
      case Style::FileOfLines:
        first = first_word(file(told->value));
        break;
    }
    if (!first.empty()) return Told<std::string>{first, told->origin};
  }
  return std::nullopt;
}

void Reader::wrong(std::string message) {
  if (!error_) error_ = Error{Errc::InvalidArgument, std::move(message)};
}

Result<Surroundings> Reader::checked(Surroundings found) {
  const auto& rank = found.node_rank;
  const auto& number = found.launchers;
  if (rank && number && rank->value >= number->value) {
    wrong(rank->origin + " is " + std::to_string(rank->value) + ", but " + number->origin +
          " counts " + std::to_string(number->value) + " from 0");
  }
  if (found.first_host && !is_host_text(found.first_host->value)) {
    wrong(found.first_host->origin + ": " + in_quotes(found.first_host->value) +
          " is no name or address of a host");
  }
  if (error_) return pass(*error_);
  return found;
}

}  // namespace muster::launcher
