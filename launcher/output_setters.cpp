// The flags that say how output is shown and kept, and who reads the input.

#include "launcher/setter.hpp"
#include "launcher/values.hpp"

#include <array>

namespace muster::launcher {
namespace {

constexpr std::int64_t kMostPieces = 10000;

Result<void> set_prefix_template(Options& options, const Context& context) {
  if (context.given.value.empty()) return {};  // As torchrun: what else is set counts.
  options.output.prefix = context.given.value;
  options.output.prefix_origin = context.given.origin;
  return {};
}

Result<void> set_filter(std::optional<RankSet>& filter, const Context& context,
                        std::uint32_t highest, std::string_view what) {
  if (context.given.value.empty()) return {};  // As torchrun: no filter.
  filter = parse_ranks(context.given.value, highest);
  if (!filter) return refuse(context.given, what, "integers or ranges with commas: 0,2-5");
  return {};
}
Result<void> set_local_ranks_filter(Options& options, const Context& context) {
  return set_filter(options.output.local_ranks_filter, context, kMaxLocalRank,
                    "a list of local ranks");
}
Result<void> set_ranks_filter(Options& options, const Context& context) {
  return set_filter(options.output.ranks_filter, context, kMaxRank, "a list of ranks");
}

Result<void> set_texts(std::vector<std::string>& texts, const Context& context) {
  if (context.given.value.empty()) return {};
  auto parts = parse_texts(context.given.value);
  if (!parts) {
    return refuse(context.given, "a list of texts",
                  "texts with commas between them, ',,' for a comma itself; an empty one would "
                  "be in every line");
  }
  texts = std::move(*parts);
  return {};
}
Result<void> set_stdout_filters(Options& options, const Context& context) {
  return set_texts(options.output.stdout_filters, context);
}
Result<void> set_stderr_filters(Options& options, const Context& context) {
  return set_texts(options.output.stderr_filters, context);
}

Result<void> set_fold(Options& options, const Context& context) {
  options.output.fold = context.given.value != "0";
  return {};
}

Result<void> set_log_format(Options& options, const Context& context) {
  if (context.given.value == "text") {
    options.output.log_format = LogFormat::Text;
  } else if (context.given.value == "json") {
    options.output.log_format = LogFormat::Json;
  } else {
    return refuse(context.given, "a log format", "text or json");
  }
  return {};
}

Result<void> set_log_max_size(Options& options, const Context& context) {
  const auto size = parse_size(context.given.value);
  if (!size || *size == 0) {
    return refuse(context.given, "a size",
                  "bytes above 0, with K, M, G or T for powers of 1024: 100M");
  }
  options.output.log_max_size = *size;
  return {};
}

Result<void> set_log_keep(Options& options, const Context& context) {
  const auto number = parse_integer(context.given.value);
  if (!number || *number < 0 || *number > kMostPieces) {
    return refuse(context.given, "a number of log files",
                  "an integer from 0 to " + std::to_string(kMostPieces));
  }
  options.output.log_keep = static_cast<std::uint32_t>(*number);
  return {};
}

Result<void> set_stdin(Options& options, const Context& context) {
  auto& input = options.output.input;
  const auto rank = parse_integer(context.given.value);
  if (context.given.value == "all") {
    input = {.to = agent::InputPlan::To::All};
  } else if (context.given.value == "none") {
    input = {.to = agent::InputPlan::To::None};
  } else if (rank && *rank >= 0 && *rank <= kMaxRank) {
    input = {.to = agent::InputPlan::To::One, .rank = {static_cast<std::uint32_t>(*rank)}};
  } else {
    return refuse(context.given, "a reader of the input", "all, none, or the rank of one worker");
  }
  return {};
}

constexpr std::array kSetters{
    Setter{"log-line-prefix-template", set_prefix_template},
    Setter{"local-ranks-filter", set_local_ranks_filter},
    Setter{"ranks-filter", set_ranks_filter},
    Setter{"duplicate-stdout-filters", set_stdout_filters},
    Setter{"duplicate-stderr-filters", set_stderr_filters},
    Setter{"fold", set_fold},
    Setter{"log-format", set_log_format},
    Setter{"log-max-size", set_log_max_size},
    Setter{"log-keep", set_log_keep},
    Setter{"stdin", set_stdin},
};

}  // namespace

std::span<const Setter> output_setters() { return kSetters; }

}  // namespace muster::launcher
