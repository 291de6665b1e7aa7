#include "launcher/options.hpp"

#include "base/exit_codes.hpp"
#include "launcher/apply.hpp"
#include "launcher/argv.hpp"
#include "launcher/config_file.hpp"
#include "launcher/flags.hpp"
#include "launcher/settle.hpp"
#include "launcher/settle_output.hpp"
#include "launcher/settle_surroundings.hpp"
#include "launcher/text.hpp"
#include "launcher/values.hpp"

#include <algorithm>
#include <cctype>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace muster::launcher {
namespace {

constexpr const char* kUsageText =
    "usage: muster [flags] script [script's arguments]\n"
    "       muster --help lists the flags\n";

constexpr std::size_t kHelpColumn = 34;

/// The longest folder_name(): leaves room for what is put behind it, within the 255 bytes of most
/// file systems.
constexpr std::size_t kMaxFolderName = 200;

/// The names under which CLI11 knows a flag: ours in full, and for its help the letter.
std::string cli_names(const Flag& flag) {
  const std::string letter = flag.letter == '\0' ? "" : std::string{'-', flag.letter} + ",";
  return letter + long_option(flag);
}

/// Collects what was given to each flag, as texts, the last one counting, and writes the help.
void build(CLI::App& app) {
  app.set_help_flag();  // The table has one.
  for (const Flag& flag : flags()) {
    if (flag.owner == Owner::NotYet) continue;
    const std::string help(flag.help);
    if (flag.takes == Takes::Nothing || flag.takes == Takes::Over) {
      app.add_flag(cli_names(flag), help);
    } else {
      const std::string value(flag.value);
      auto* const option = app.add_option(cli_names(flag), help)->type_name(value);
      if (flag.takes == Takes::Values) {
        option->take_all();
      } else {
        option->take_last();
      }
      if (flag.takes == Takes::MaybeValue) option->option_text("[=" + value + "]");
    }
  }
}

/// CLI11's help, but for a value that has to stand behind a `=`: no blank in front of it.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string& text = option->get_option_text();
    return text.empty() ? CLI::Formatter::make_option_opts(option) : text;
  }
};

ExitNow help(const CLI::App& app) {
  HelpFormatter formatter;
  formatter.column_width(kHelpColumn);
  std::string text = "usage: muster [flags] script [script's arguments]\n";
  text += formatter.make_groups(&app, CLI::AppFormatMode::Normal);
  text +=
      "\nThe script is a Python file, or any program. Underscores in flags are as good as dashes, "
      "unique\n"
      "beginnings are enough, and PET_<FLAG> in the environment (MUSTER_<FLAG> for what torchrun\n"
      "lacks) stands for a flag that is not given.\n"
      "\nPython files run with the active virtual or conda environment's Python, or else PATH's\n"
      "python3; PYTHON_EXEC in the environment names another one.\n";
  return {.code = 0, .out = std::move(text), .err = {}};
}

/// What stands for the flag in the environment, if anything does.
Result<std::optional<Given>> from_environment(const Flag& flag, const Environment& environment) {
  const std::string name = variable_name(flag);
  auto found = name.empty() ? environment.end() : environment.find(name);
  if (found == environment.end() && flag.name == "shutdown-timeout") {
    found = environment.find("TORCH_ELASTIC_SHUTDOWN_TIMEOUT");  // torchrun's other name for it.
  }
  if (found == environment.end()) return std::nullopt;
  Given given{.value = found->second, .origin = found->first};
  if (flag.takes == Takes::Nothing) {
    const auto on = parse_integer(given.value);
    if (!on) {
      return fail(Errc::InvalidArgument,
                  name + ": " + in_quotes(given.value) +
                      " is not a switch: give 1 for on, 0 for off, or unset it");
    }
    given.value = *on == 0 ? "0" : "1";
  }
  // torchrun's, which this version does not have: an empty or switched off one asks for nothing.
  const bool off = given.value.empty() || (flag.takes == Takes::Nothing && given.value == "0");
  if (flag.owner == Owner::NotYet && off) return std::nullopt;
  return given;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t index = 0; index < names.size(); ++index) {
    if (index > 0) text += index + 1 == names.size() ? " and " : ", ";
    text += names[index];
  }
  return text;
}

/// All that was asked for and is not there yet, in one message: nobody wants to meet it flag by
/// flag.
Result<void> refuse_not_yet(std::span<const Flag* const> met, const Environment& environment) {
  std::vector<std::string> names;
  bool has_variable = false;
  for (const Flag& flag : flags()) {
    if (flag.owner != Owner::NotYet) continue;
    const bool on_line = std::ranges::find(met, &flag) != met.end();
    if (!on_line) {
      const auto given = from_environment(flag, environment);
      if (!given) return pass(given.error());
      if (!*given) continue;
      has_variable = true;
    }
    names.push_back(on_line ? long_option(flag) : variable_name(flag));
  }
  if (names.empty()) return {};
  const bool one = names.size() == 1;
  std::string message = joined(names);
  message += one ? (has_variable ? " stands for a flag" : " is a flag")
                 : (has_variable ? " are flags, or stand for flags," : " are flags");
  message += " of torchrun that this version of muster does not have yet: ";
  message += has_variable ? (one ? "unset " : "leave out or unset ") : "leave ";
  message += one ? "it" : "them";
  if (!has_variable) message += " out";
  return fail(Errc::InvalidArgument, message);
}

/// LOGLEVEL is read by other programs too: what we don't know is said, not refused.
void use_python_log_level(const Environment& environment, Options& options) {
  const auto found = environment.find("LOGLEVEL");
  if (found == environment.end() || found->second.empty() || found->second == "NOTSET") return;
  if (const auto level = parse_log_level(found->second)) {
    options.log_level = *level;
  } else {
    options.notices.push_back("LOGLEVEL: " + in_quotes(found->second) +
                              " is no log level that muster knows: info is used");
  }
}

/// torchrun's other name for --log-line-prefix-template, below the flag and its own variable.
void use_torchelastic_prefix(const Environment& environment, Options& options) {
  const auto found = environment.find("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");
  if (found != environment.end() && !found->second.empty()) options.output.prefix = found->second;
}

/// What is given to a flag, by the command line or else by a variable.
Result<std::optional<Given>> given_to(const Flag& flag, const CLI::App& app,
                                      const Environment& environment) {
  const std::string option = long_option(flag);
  if (app.count(option) == 0) return from_environment(flag, environment);
  if (flag.takes == Takes::Nothing) return Given{.value = "1", .origin = option};
  const auto& results = app.get_option(option)->results();
  if (flag.takes != Takes::Values) return Given{.value = results.back(), .origin = option};
  std::string all;
  for (const auto& result : results) all += (all.empty() ? "" : ",") + result;
  return Given{.value = all, .origin = option};
}

/// What the file of --config says, below the command line and the variables.
Result<GivenFlags> from_file(const GivenFlags& given, const Machine& machine) {
  const auto config = given.find("config");
  if (config == given.end() || config->second.value.empty()) return GivenFlags();
  const auto& [path, origin] = config->second;
  const auto text = machine.read_file(path);
  if (!text) return fail(Errc::InvalidArgument, origin + ": " + text.error().message);
  return parse_config(*text, path);
}

/// Who gives what: the command line, variables, the file of --config.
Result<GivenFlags> given_flags(const CLI::App& app, const Environment& environment,
                               const Machine& machine) {
  GivenFlags all;
  for (const Flag& flag : flags()) {
    if (flag.takes == Takes::Over || flag.owner == Owner::NotYet) continue;
    auto given = given_to(flag, app, environment);
    if (!given) return pass(given.error());
    if (*given) all.emplace(flag.name, **std::move(given));
  }
  auto of_file = from_file(all, machine);
  if (!of_file) return of_file;
  all.merge(*of_file);
  return all;
}

bool is_standalone(const GivenFlags& given) {
  const auto at = given.find("standalone");
  return at != given.end() && at->second.value != "0";
}

/// A limit that the budget of restarts never lets the job reach.
void notice_idle_limit(Options& options) {
  const auto& most = options.job.max_restarts_without_progress;
  if (!most || options.job.max_restarts >= *most - 1) return;
  options.notices.push_back("--max-restarts-without-progress " + std::to_string(*most) +
                            " has no effect: --max-restarts " +
                            std::to_string(options.job.max_restarts) + " allows " +
                            std::to_string(options.job.max_restarts + 1) + " failed " +
                            (options.job.max_restarts == 0 ? "attempt" : "attempts"));
}

/// The same command line may serve machines of several sizes, so a rank too many is no error.
void notice_ranks_beyond(Options& options) {
  const auto notice = [&options](std::string_view flag, LocalRank highest) {
    if (highest.value < options.nproc) return;
    options.notices.push_back(std::string(flag) + " names local rank " +
                              std::to_string(highest.value) + ", but the highest is " +
                              std::to_string(options.nproc - 1));
  };
  if (!options.redirects.named.empty())
    notice("--redirects", options.redirects.named.rbegin()->first);
  if (!options.tee.named.empty()) notice("--tee", options.tee.named.rbegin()->first);
  if (const auto& filter = options.output.local_ranks_filter)
    notice("--local-ranks-filter", {filter->highest()});
}

Result<Options> fill_options(const CLI::App& app, const Environment& environment,
                             const Machine& machine) {
  Options options;
  options.nproc_origin = "default";
  use_python_log_level(environment, options);
  use_torchelastic_prefix(environment, options);
  auto given = given_flags(app, environment, machine);
  if (!given) return pass(given.error());
  if (!is_standalone(*given)) {
    auto found = surroundings_of(environment, machine.read_file);
    if (!found) return pass(found.error());
    options.surroundings = *std::move(found);
    const auto placed = settle_surroundings(options.surroundings, environment, *given, options);
    if (!placed) return pass(placed.error());
  }
  notice_inherited(environment, options);
  for (const Flag& flag : flags()) {
    const auto at = given->find(flag.name);
    if (at == given->end()) continue;
    const auto applied = apply(flag.name, at->second, environment, machine, options);
    if (!applied) return pass(applied.error());
  }
  options.given = *std::move(given);
  if (options.relaunch) return options;
  warn_of_processors(options);
  if (const auto settled = settle_meeting(options); !settled) return pass(settled.error());
  settle_stopping(options, environment);
  if (const auto settled = settle_output(options); !settled) return pass(settled.error());
  notice_ranks_beyond(options);
  notice_idle_limit(options);
  return options;
}

}  // namespace

std::variant<Options, ExitNow> parse_command_line(std::span<const std::string> argv,
                                                  const Environment& environment,
                                                  const Machine& machine) {
  auto cut = cut_command_line(argv.empty() ? argv : argv.subspan(1));
  if (!cut) return usage_error(cut.error().message);

  CLI::App app("", "muster");
  build(app);
  try {
    std::ranges::reverse(cut->flags);  // CLI11 takes them from the back.
    app.parse(cut->flags);
  } catch (const CLI::Error& error) {
    return usage_error(error.what());
  }
  if (app.count("--help") > 0) return help(app);
  if (app.count("--version") > 0) {
    return ExitNow{.code = 0, .out = "muster " MUSTER_VERSION "\n", .err = {}};
  }
  if (const auto all_there = refuse_not_yet(cut->not_yet, environment); !all_there) {
    return usage_error(all_there.error().message);
  }
  const bool explains = app.count("--explain") > 0;
  if (!cut->script && !explains)
    return usage_error("the script is missing: name the program that the workers run");

  auto options = fill_options(app, environment, machine);
  if (!options) return usage_error(options.error().message);
  options->script = cut->script.value_or("");
  options->script_args = std::move(cut->script_args);
  if (!argv.empty()) options->invoked_as = argv.front();
  return std::move(*options);
}

ExitNow usage_error(const std::string& message) {
  return {.code = kUsage,
          .out = {},
          .err = std::string(kUsageText) + "muster: error: " + message + "\n"};
}

std::string folder_name(std::string_view job_id) {
  std::string name(job_id.substr(0, kMaxFolderName));
  for (char& c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                       std::string_view("._+=@,:-").find(c) != std::string_view::npos;
    if (!plain) c = '_';
  }
  // Neither hidden, nor `..`, nor a flag to whoever works in the folder.
  if (name.starts_with('.') || name.starts_with('-')) name.front() = '_';
  return name.empty() ? "_" : name;
}

}  // namespace muster::launcher
