#include "rendezvous/daemon/options.hpp"

#include "base/exit_codes.hpp"
#include "base/posix/file.hpp"
#include "base/posix/fork.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace muster::rendezvous {
namespace {

/// Of a configuration file; a longer one is refused.
constexpr std::size_t kLongestFile = 64UL * 1024;
constexpr std::size_t kHelpColumn = 34;

/// The limits of the limits, so that no sum of ours overflows.
constexpr std::uint64_t kMostCount = 10'000'000;
constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 50;
constexpr Duration kLongestLease = std::chrono::hours(24);
constexpr Duration kShortestLease = std::chrono::milliseconds(100);

Result<std::size_t> parse_count(const std::string& text) {
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{} || end != text.data() + text.size() || count == 0 ||
      count > kMostCount) {
    return fail(Errc::InvalidArgument, "is not a number of 1 to " + std::to_string(kMostCount));
  }
  return count;
}

/// Whether one of CLI11's validators took the text, and made a number of it.
template <class Number>
bool read_with(const CLI::Validator& validator, std::string text, Number& number) {
  try {
    return validator(text).empty() && CLI::detail::lexical_cast(text, number);
  } catch (const CLI::Error&) {
    return false;
  }
}

Result<std::size_t> parse_memory(const std::string& text) {
  std::uint64_t bytes = 0;
  const bool wrong = text.starts_with('-') || !read_with(CLI::AsSizeValue(false), text, bytes) ||
                     bytes == 0 || bytes > kMostMemory;
  if (wrong) return fail(Errc::InvalidArgument, "is no amount of memory: give 512M, 2G, ...");
  return bytes;
}

Result<Duration> parse_lease(const std::string& text) {
  const std::map<std::string, double> units{{"ms", 0.001}, {"s", 1}, {"m", 60}, {"h", 3600}};
  double seconds = 0;
  const bool wrong = !read_with(CLI::AsNumberWithUnit(units), text, seconds) ||
                     !(seconds <= std::chrono::duration<double>(kLongestLease).count() &&
                       seconds >= std::chrono::duration<double>(kShortestLease).count());
  if (wrong) return fail(Errc::InvalidArgument, "is no time of 100ms to 24h: give 60s, 5m, ...");
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

Result<Endpoint> parse_listen(const std::string& text) {
  // `:29400` is short for all addresses; parse_endpoint wants a host.
  const bool all = text.starts_with(':') && text.find(':', 1) == std::string::npos;
  auto endpoint = parse_endpoint(all ? "all" + text : text, kDefaultPort);
  if (!endpoint) return pass(endpoint.error());
  if (all) endpoint->host.clear();
  return endpoint;
}

/// Puts a parsed value where it belongs, or says what is wrong with it.
template <class Value, class Field>
Result<void> put(Result<Value> value, Field& field) {
  if (!value) return pass(value.error());
  field = std::move(*value);
  return {};
}

Result<std::string> parse_path(const std::string& text) {
  if (text.empty()) return fail(Errc::InvalidArgument, "is no path");
  return text;
}

struct Flag {
  std::string_view name;
  std::string_view value;
  std::string_view help;
  std::string_view variable;  ///< That stands for it; empty: none.
  Result<void> (*apply)(DaemonOptions&, const std::string&);
};

constexpr std::array kFlags{
    Flag{"listen", "HOST:PORT", "where to listen; port 0 takes a free one [all addresses, 29400]",
         "", [](DaemonOptions& o, const std::string& t) { return put(parse_listen(t), o.listen); }},
    Flag{"token-file", "FILE", "whose one line agents and operators must know [agents: none]",
         "MUSTER_TOKEN_FILE",
         [](DaemonOptions& o, const std::string& t) { return put(parse_path(t), o.token_file); }},
    Flag{"state-folder", "DIR", "for what is remembered over a restart [the user's state folder]",
         "STATE_DIRECTORY",
         [](DaemonOptions& o, const std::string& t) { return put(parse_path(t), o.state_folder); }},
    Flag{"max-lease", "TIME", "the longest lease that a job may ask for [60s]", "",
         [](DaemonOptions& o, const std::string& t) { return put(parse_lease(t), o.max_lease); }},
    Flag{"max-jobs", "N", "jobs at one time [1000]", "",
         [](DaemonOptions& o, const std::string& t) { return put(parse_count(t), o.max_jobs); }},
    Flag{"max-nodes", "N", "nodes of all jobs together [20000]", "",
         [](DaemonOptions& o, const std::string& t) { return put(parse_count(t), o.max_nodes); }},
    Flag{"max-connections", "N",
         "connections at one time, a third of them of the c10d store [40000]", "",
         [](DaemonOptions& o, const std::string& t) {
           return put(parse_count(t), o.max_connections);
         }},
    Flag{"max-store-memory", "SIZE", "keys and values of the c10d store [2G]", "",
         [](DaemonOptions& o, const std::string& t) {
           return put(parse_memory(t), o.max_store_memory);
         }},
    Flag{"log-level", "LEVEL", "trace, debug, info, warn, error or off [info]", "",
         [](DaemonOptions& o, const std::string& t) -> Result<void> {
           const auto level = parse_log_level(t);
           if (!level) {
             return fail(Errc::InvalidArgument,
                         "is no level: give trace, debug, info, warn, error or off");
           }
           o.log_level = *level;
           return {};
         }},
};

const Flag* find_flag(std::string_view name) {
  const auto found = std::ranges::find(kFlags, name, &Flag::name);
  return found == kFlags.end() ? nullptr : &*found;
}

/// A value, and where it stands: `--listen`, `/etc/musterd.toml:3: listen`.
struct Given {
  std::string value;
  std::string origin;
};
using AllGiven = std::map<std::string_view, Given>;

/// Adds what the lines `name = value` of the file say to what the command line did not. CLI11 reads
/// them one by one, since it forgets their numbers.
Result<void> read_config(const std::string& path, AllGiven& given) {
  const auto text = posix::read_start(path, kLongestFile + 1);
  if (!text) return fail(Errc::InvalidArgument, "--config: " + text.error().message);
  if (text->size() > kLongestFile) {
    return fail(Errc::InvalidArgument,
                "--config: " + path + " is longer than " + std::to_string(kLongestFile) + " bytes");
  }
  std::map<std::string, std::size_t> seen;
  std::istringstream lines(*text);
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    const auto wrong = [&](const std::string& what) {
      return fail(Errc::InvalidArgument, path + ":" + std::to_string(number) + ": " + what);
    };
    std::vector<CLI::ConfigItem> items;
    try {
      std::istringstream one(line);
      items = CLI::ConfigTOML().from_config(one);
    } catch (const CLI::Error& error) {
      return wrong(error.what());
    }
    for (const auto& item : items) {
      if (!item.parents.empty() || item.name == "++") {
        return wrong("sections have no meaning here: one `name = value` a line");
      }
      std::string name = item.name;
      std::ranges::replace(name, '_', '-');
      const Flag* const flag = find_flag(name);
      if (flag == nullptr) {
        return wrong("'" + printable(item.name) + "' is no setting; musterd --help lists them");
      }
      if (item.inputs.size() != 1) return wrong(name + ": one value belongs here");
      if (const auto [first, fresh] = seen.emplace(name, number); !fresh) {
        return wrong(name + " is given in line " + std::to_string(first->second) + " already");
      }
      given.try_emplace(flag->name,
                        Given{.value = item.inputs.front(),
                              .origin = path + ":" + std::to_string(number) + ": " + name});
    }
  }
  return {};
}

void add_variables(const Environment& environment, AllGiven& given) {
  for (const Flag& flag : kFlags) {
    const auto found = environment.find(std::string(flag.variable));
    if (flag.variable.empty() || found == environment.end() || found->second.empty()) continue;
    auto value = found->second;
    // systemd names several folders where a unit asks for several; the first is ours.
    if (flag.variable == "STATE_DIRECTORY") value = value.substr(0, value.find(':'));
    given.try_emplace(flag.name,
                      Given{.value = std::move(value), .origin = std::string(flag.variable)});
  }
}

/// Where a server that was started by hand remembers what it must. A container's folders may be as
/// new as the container, and then say nothing of the servers before it: there it is the user who
/// knows a folder that lasts.
std::optional<std::string> default_state_folder(const Environment& environment) {
  const auto value = [&environment](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  if (posix::has_own_process_namespace() || !value("KUBERNETES_SERVICE_HOST").empty())
    return std::nullopt;
  if (const auto home = value("XDG_STATE_HOME"); !home.empty()) return home + "/muster";
  if (const auto home = value("HOME"); !home.empty()) return home + "/.local/state/muster";
  return std::nullopt;
}

std::string help(const CLI::App& app) {
  CLI::Formatter formatter;
  formatter.column_width(kHelpColumn);
  return "usage: musterd [flags]\n\n"
         "The standing rendezvous server: many jobs of many nodes meet at its one port, agents of\n"
         "muster as well as torchrun's. musterctl lists and steers them.\n" +
         formatter.make_groups(&app, CLI::AppFormatMode::Normal) +
         "\nTimes and sizes have a unit: 500ms, 60s, 5m, 512M, 2G. A configuration file has a "
         "line\n"
         "`name = value` for each flag, without its dashes. MUSTER_TOKEN_FILE stands for\n"
         "--token-file, systemd's STATE_DIRECTORY for --state-folder (else it is muster in\n"
         "XDG_STATE_HOME or ~/.local/state, and in a container there is none).\n";
}

}  // namespace

PrintAndEnd daemon_usage_error(const std::string& message) {
  return {.code = kUsage,
          .out = {},
          .err =
              "usage: musterd [flags]\n       musterd --help lists the flags\n"
              "musterd: error: " +
              message + "\n"};
}

std::variant<DaemonOptions, PrintAndEnd> parse_daemon_options(std::span<const std::string> argv,
                                                              const Environment& environment) {
  CLI::App app;
  app.set_help_flag();
  bool wants_help = false;
  bool wants_version = false;
  std::string config;
  std::map<std::string_view, std::string> texts;
  for (const Flag& flag : kFlags) {
    app.add_option("--" + std::string(flag.name), texts[flag.name], std::string(flag.help))
        ->take_last()
        ->type_name(std::string(flag.value));
  }
  app.add_option("--config", config, "a file with these settings, a line each")
      ->take_last()
      ->type_name("FILE");
  app.add_flag("-h,--help", wants_help, "print this and exit");
  app.add_flag("--version", wants_version, "print the version and exit");
  try {
    std::vector<std::string> arguments(argv.rbegin(), argv.rend());  // CLI11 takes from the end.
    if (!arguments.empty()) arguments.pop_back();
    app.parse(std::move(arguments));
  } catch (const CLI::Error& error) {
    return daemon_usage_error(printable(error.what()));
  }
  if (wants_help) return PrintAndEnd{.out = help(app)};
  if (wants_version) return PrintAndEnd{.out = "musterd " MUSTER_VERSION "\n"};

  AllGiven given;
  for (const Flag& flag : kFlags) {
    const std::string option = "--" + std::string(flag.name);
    if (app.count(option) > 0) given[flag.name] = {.value = texts[flag.name], .origin = option};
  }
  if (app.count("--config") > 0) {
    if (const auto read = read_config(config, given); !read) {
      return daemon_usage_error(read.error().message);
    }
  }
  add_variables(environment, given);

  DaemonOptions options;
  for (const auto& [name, value] : given) {
    if (const auto applied = find_flag(name)->apply(options, value.value); !applied) {
      return daemon_usage_error(value.origin + ": '" + printable(value.value) + "' " +
                                applied.error().message);
    }
  }
  options.state_folder_is_given = options.state_folder.has_value();
  if (!options.state_folder) options.state_folder = default_state_folder(environment);
  return options;
}

}  // namespace muster::rendezvous
