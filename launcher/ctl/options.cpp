#include "launcher/ctl/options.hpp"

#include "base/exit_codes.hpp"
#include "base/text.hpp"
#include "launcher/text.hpp"
#include "launcher/values.hpp"

#include <string_view>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace muster::ctl {
namespace {

using launcher::in_quotes;

constexpr std::uint16_t kDefaultPort = 29400;
constexpr std::int64_t kMostNodes = 1'000'000;

PrintAndEnd usage_error(const std::string& message) {
  return {.code = kUsage,
          .out = {},
          .err =
              "usage: musterctl [flags] command\n       musterctl --help lists them\n"
              "musterctl: error: " +
              message + "\n"};
}

/// `2:8`, or `4` for both.
std::optional<Sizes> parse_sizes(std::string_view text) {
  const auto colon = text.find(':');
  const auto min = launcher::parse_integer(text.substr(0, colon));
  const auto max =
      colon == std::string_view::npos ? min : launcher::parse_integer(text.substr(colon + 1));
  if (!min || !max || *min < 1 || *max < *min || *max > kMostNodes) return std::nullopt;
  return Sizes{
      .job = {}, .min = static_cast<std::uint32_t>(*min), .max = static_cast<std::uint32_t>(*max)};
}

/// What was typed, by name of the argument.
struct Texts {
  std::string job;
  std::string node;
  std::string sizes;
  std::string server;
  std::string token_file;
  std::string timeout;
};

Result<Request> request_of(const std::string& command, const Texts& texts) {
  if (command == "jobs") return Jobs{};
  if (command == "status") return Status{texts.job};
  if (command == "drain") return Drain{texts.job, texts.node};
  if (command == "restart") return Restart{texts.job};
  if (command == "stop") return Stop{texts.job};
  if (command == "watch") return Watch{texts.job};
  auto sizes = parse_sizes(texts.sizes);
  if (!sizes) {
    return fail(Errc::InvalidArgument,
                "sizes: " + in_quotes(texts.sizes) +
                    " is no MIN:MAX with a minimum of 1 or more and a maximum not below it");
  }
  sizes->job = texts.job;
  return *sizes;
}

}  // namespace

std::variant<Options, PrintAndEnd> parse_command_line(std::span<const std::string> argv,
                                                      const Environment& environment) {
  constexpr std::size_t kHelpColumn = 30;
  CLI::App app("Lists, watches and steers the jobs of a rendezvous server of muster.", "musterctl");
  app.get_formatter()->column_width(kHelpColumn);
  app.require_subcommand(1);
  app.fallthrough();  // Flags may stand before or behind the command.
  Options options;
  Texts texts;
  bool wants_version = false;
  app.set_help_flag("-h,--help", "print this and exit");
  app.add_flag("--version", wants_version, "print the version and exit");
  app.add_flag("--json", options.json, "print JSON, for programs");
  auto* const server =
      app.add_option("--server", texts.server, "the server [the one that you run on this machine]")
          ->type_name("HOST:PORT");
  auto* const token_file =
      app.add_option("--token-file", texts.token_file,
                     "the server's token [MUSTER_TOKEN_FILE, or what a server here made]")
          ->type_name("FILE");
  auto* const timeout =
      app.add_option("--timeout", texts.timeout, "how long an answer may take [10s]")
          ->type_name("TIME");

  const auto command = [&app](const char* name, const char* help) {
    return app.add_subcommand(name, help);
  };
  const auto takes_job = [&texts](CLI::App* of, bool required) {
    auto* const job = of->add_option("job", texts.job, "the job's id")->type_name("JOB");
    if (required) job->required();
  };
  command("jobs", "list the jobs");
  takes_job(command("status", "show jobs with their nodes"), false);
  auto* const drain = command("drain", "take a node out of its job");
  takes_job(drain, true);
  drain->add_option("node", texts.node, "its name, address, node rank, machine key or incarnation")
      ->type_name("NODE")
      ->required();
  takes_job(command("restart", "restart the job's workers, charged to nobody"), true);
  takes_job(command("stop", "end the job on all its nodes"), true);
  auto* const sizes = command("sizes", "set how many nodes the job may have");
  takes_job(sizes, true);
  sizes->add_option("sizes", texts.sizes, "nodes at least and at most")
      ->type_name("MIN:MAX")
      ->required();
  takes_job(command("watch", "print what happens, until it is interrupted"), false);

  try {
    std::vector<std::string> arguments(argv.rbegin(), argv.rend());  // CLI11 takes from the end.
    if (!arguments.empty()) arguments.pop_back();
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    return PrintAndEnd{.out = app.help()};
  } catch (const CLI::Error& error) {
    if (wants_version) return PrintAndEnd{.out = "musterctl " MUSTER_VERSION "\n"};
    return usage_error(printable(error.what()));
  }
  if (wants_version) return PrintAndEnd{.out = "musterctl " MUSTER_VERSION "\n"};

  auto request = request_of(app.get_subcommands().front()->get_name(), texts);
  if (!request) return usage_error(request.error().message);
  options.request = std::move(*request);
  if (server->count() > 0) {
    auto endpoint = parse_endpoint(texts.server, kDefaultPort);
    if (!endpoint) return usage_error("--server: " + endpoint.error().message);
    options.server = std::move(*endpoint);
  }
  if (token_file->count() > 0) {
    options.token_file = texts.token_file;
  } else if (const auto found = environment.find("MUSTER_TOKEN_FILE");
             found != environment.end() && !found->second.empty()) {
    options.token_file = found->second;
  }
  if (timeout->count() > 0) {
    const auto time = launcher::parse_time(texts.timeout);
    if (!time || *time == Duration::zero()) {
      return usage_error("--timeout: " + in_quotes(texts.timeout) +
                         " is no time: give 500ms, 10s, 1m, ...");
    }
    options.timeout = *time;
  }
  return options;
}

}  // namespace muster::ctl
