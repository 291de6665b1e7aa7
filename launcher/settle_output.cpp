#include "launcher/settle_output.hpp"

#include <string>
#include <string_view>

namespace muster::launcher {
namespace {

const StreamMap kNone;

bool any_by_line(const Options& options) {
  const auto& output = options.output;
  return options.tee != kNone || output.fold || output.log_format == LogFormat::Json;
}

/// As torchrun: there, too, /dev/null says that there be no files, so nothing can go to one.
void settle_no_files(Options& options) {
  if (options.log_dir != "/dev/null") return;
  auto& filter = options.output.local_ranks_filter;
  if (options.redirects != kNone || options.tee != kNone || filter) {
    options.notices.emplace_back(
        "--log-dir /dev/null: --redirects, --tee and --local-ranks-filter have no effect");
  }
  options.log_dir.reset();
  options.keeps_files = false;
  options.redirects = kNone;
  options.tee = kNone;
  filter.reset();
}

Result<void> settle_copies(Options& options) {
  const auto& output = options.output;
  if (output.stdout_filters.empty() && output.stderr_filters.empty()) return {};
  const std::string flag =
      output.stdout_filters.empty() ? "--duplicate-stderr-filters" : "--duplicate-stdout-filters";
  if (!options.log_dir) {
    return fail(Errc::InvalidArgument,
                flag + " needs a folder for the file with the copies: give --log-dir DIR");
  }
  if (!any_by_line(options)) {
    options.notices.push_back(flag +
                              " copies lines of --tee, and there are none: its file stays "
                              "empty");
  }
  return {};
}

void settle_rotation(Options& options) {
  const auto& output = options.output;
  if (output.log_keep && output.log_max_size == 0) {
    options.notices.emplace_back("--log-keep has no effect without --log-max-size");
  }
  const bool has_files = options.redirects != kNone || (options.log_dir && options.tee != kNone);
  if (output.log_max_size > 0 && !has_files) {
    options.notices.emplace_back(
        "--log-max-size has no effect: no output goes into files (--redirects, or --log-dir with "
        "--tee)");
  }
}

}  // namespace

Result<void> settle_output(Options& options) {
  settle_no_files(options);
  const auto& output = options.output;
  const bool is_json = output.log_format == LogFormat::Json;
  if (output.fold && is_json) {
    return fail(Errc::InvalidArgument,
                "--fold and --log-format json exclude each other: a JSON line is of one rank");
  }
  if (auto settled = settle_copies(options); !settled) return settled;
  settle_rotation(options);
  const bool asked_for_prefix = output.prefix && !output.prefix_origin.empty();
  if (asked_for_prefix && is_json) {
    options.notices.push_back(output.prefix_origin + " has no effect on JSON lines");
  } else if (asked_for_prefix && !any_by_line(options)) {
    options.notices.push_back(output.prefix_origin + " has no effect without --tee or --fold");
  }
  return {};
}

}  // namespace muster::launcher
