// musterd: the standing rendezvous server. One thread runs the loop and owns everything; another
// writes to the state folder, and gRPC's threads, once an operator has called, carry calls to it.

#include "base/exit_codes.hpp"
#include "base/posix/boot_clock.hpp"
#include "base/posix/fork.hpp"
#include "base/posix/limits.hpp"
#include "base/posix/signals.hpp"
#include "base/posix/socket.hpp"
#include "base/posix/stream.hpp"
#include "base/text.hpp"
#include "rendezvous/client/secret.hpp"
#include "rendezvous/client/token_file.hpp"
#include "rendezvous/daemon/listen.hpp"
#include "rendezvous/daemon/options.hpp"
#include "rendezvous/daemon/service_manager.hpp"
#include "rendezvous/daemon/state_folder.hpp"
#include "rendezvous/daemon/state_writer.hpp"
#include "rendezvous/server/control.hpp"
#include "rendezvous/server/kept_verdict.hpp"
#include "rendezvous/server/local_server_file.hpp"
#include "rendezvous/server/server.hpp"
#include "rendezvous/server/server_board.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <random>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/system/system_error.hpp>

namespace muster::rendezvous {
namespace {

/// Recovery lasts so much of the longest lease (protocol.md 6).
constexpr double kRecovery = 1.25;

int leave(const PrintAndEnd& end) {
  const bool told = posix::write_within(1, end.out, posix::kReadPatience);
  (void)posix::write_within(2, end.err, posix::kReadPatience);
  return told ? end.code : kOwnError;
}

/// What the user can mend is his: exit code 2.
int refuse(const Error& error, const std::string& what = {}) {
  const bool usage = error.code == Errc::InvalidArgument || error.code == Errc::NotFound;
  (void)posix::write_within(2, "musterd: error: " + what + error.message + "\n",
                            posix::kReadPatience);
  return usage ? kUsage : kOwnError;
}

Environment read_environment() {
  Environment environment;
  for (const char* name :
       {"MUSTER_TOKEN_FILE", "STATE_DIRECTORY", "XDG_STATE_HOME", "HOME", "XDG_RUNTIME_DIR",
        "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "KUBERNETES_SERVICE_HOST"}) {
    if (const char* const value = std::getenv(name)) environment.emplace(name, value);
  }
  return environment;
}

std::uint64_t random_bits() {
  std::random_device device;
  return (std::uint64_t{device()} << 32U) | device();
}

/// Whether nobody can hold a round that a server of this port gave out (protocol.md 6): none
/// has been here, and what was here before the machine started has run out of its lease.
bool is_first_here(const StateFolder* state, std::uint16_t port, Duration max_lease) {
  const std::chrono::duration<double> up = posix::boot_now().time_since_epoch();
  return state != nullptr && !state->has_served(port) && up > max_lease * kRecovery;
}

/// The verdicts that a server of this port gave before this one.
std::vector<Archive::Kept> kept_verdicts(const StateFolder& state, std::uint16_t port,
                                         Logger& logger) {
  std::vector<Archive::Kept> kept;
  for (const auto& record : state.records(port, Archive::kKept)) {
    auto ended = decode_kept(record.content);
    if (ended) {
      kept.push_back({.ended = std::move(*ended), .age = record.age});
    } else {
      logger.warn("{} is passed over: {}", record.path, ended.error().message);
    }
  }
  return kept;
}

/// How many connections are taken, of all kinds together: as many as asked for, or as descriptors
/// allow.
Result<std::size_t> connection_limit(const DaemonOptions& options, Logger& logger) {
  constexpr std::size_t kOwnDescriptors = 64;  // Beside connections: files, loops, gRPC's own.
  posix::raise_open_file_limit();
  const auto limit = posix::open_file_limit();
  if (limit < 2 * kOwnDescriptors) {
    return fail(Errc::InvalidArgument, "the limit on open files (ulimit -n) is " +
                                           std::to_string(limit) + ": at least " +
                                           std::to_string(2 * kOwnDescriptors) + " are needed");
  }
  const auto room = limit - kOwnDescriptors;
  if (options.max_connections && *options.max_connections > room) {
    logger.warn(
        "--max-connections {} is more than the limit on open files allows: {}; {} are taken",
        *options.max_connections, limit, room);
  }
  return std::min(options.max_connections.value_or(kConnections), room);
}

/// Ends the loop's run when a signal asks for it.
class EndBySignal {
 public:
  EndBySignal(boost::asio::io_context& loop, posix::SignalSource source, Logger& logger)
      : loop_(loop),
        source_(std::move(source)),
        readable_(loop, source_.descriptor()),
        logger_(logger) {
    wait();
  }
  EndBySignal(const EndBySignal&) = delete;
  EndBySignal& operator=(const EndBySignal&) = delete;
  ~EndBySignal() { readable_.release(); }  // The source owns the descriptor.

 private:
  void wait() {
    readable_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                         [this](const boost::system::error_code& error) {
                           if (error) return;
                           const auto signal = source_.next();
                           if (!signal) return wait();
                           logger_.info("shutting down signal={}", signal_name(signal->number));
                           loop_.stop();
                         });
  }

  boost::asio::io_context& loop_;
  posix::SignalSource source_;
  boost::asio::posix::stream_descriptor readable_;
  Logger& logger_;
};

int serve(const DaemonOptions& options, const Environment& environment) {
  const auto logger = make_stderr_logger(options.log_level);
  // Before any thread exists: all of them inherit it.
  posix::ignore_signal(SIGPIPE);
  posix::ignore_signal(SIGHUP);
  auto signals = posix::SignalSource::open({SIGTERM, SIGINT});
  if (!signals) return refuse(signals.error());
  const auto connections = connection_limit(options, *logger);
  if (!connections) return refuse(connections.error());

  std::optional<std::string> token;
  if (options.token_file) {
    auto read = read_token_file(*options.token_file);
    if (!read) return refuse(read.error(), "--token-file: ");
    token = std::move(*read);
  }
  std::optional<StateFolder> state;
  if (options.state_folder) {
    auto opened = StateFolder::open(*options.state_folder);
    if (!opened && options.state_folder_is_given) return refuse(opened.error(), "--state-folder: ");
    if (opened) {
      state = std::move(*opened);
    } else {
      logger->warn("nothing is remembered over a restart: {}", opened.error().message);
    }
  }

  boost::asio::io_context loop(1);
  auto manager = ServiceManager::find(loop, environment, posix::own_pid(), *logger);
  if (!manager) return refuse(manager.error());

  auto listener = listen_at(options.listen);
  if (!listener) return refuse(listener.error(), "--listen: ");
  const auto bound_at = std::chrono::steady_clock::now();
  const Endpoint endpoint = posix::to_endpoint(posix::local_address(listener->get()));

  Server::Options settings;
  settings.core = {
      .max_lease = options.max_lease,
      .first_here = is_first_here(state ? &*state : nullptr, endpoint.port, options.max_lease),
      .bound_at = bound_at,
      .epoch_bits = static_cast<std::uint32_t>(random_bits()),
      .seed = random_bits(),
      .version = MUSTER_VERSION,
      .limits = {.jobs = options.max_jobs, .nodes = options.max_nodes}};
  settings.listeners.push_back(std::move(*listener));
  settings.token = token;
  settings.connections = *connections;
  settings.store.limits.stored_bytes = options.max_store_memory;
  const bool recovers = !settings.core.first_here;
  if (state) {
    settings.core.kept = kept_verdicts(*state, endpoint.port, *logger);
    if (const auto marked = state->mark_served(endpoint.port); !marked) {
      return refuse(marked.error(), "--state-folder: ");
    }
  }
  const auto not_kept = [&logger](const std::string& job, const Error& error) {
    logger->warn("the verdict of job {} would not outlive a restart: {}", printable(job),
                 error.message);
  };
  std::optional<StateWriter> writer;
  if (state) {
    writer.emplace(loop, *state,
                   StateWriter::Options{.port = endpoint.port, .oldest = Archive::kKept}, not_kept);
  }
  auto server = Server::start(loop, std::move(settings), *logger);
  if (!server) return refuse(server.error());

  LocalServer local{.pid = posix::own_pid(),
                    .program = "musterd",
                    .endpoint = posix::dialled_from_here(endpoint),
                    .token = {},
                    .job = {}};
  if (!token) {
    auto made = random_secret();
    if (!made) return refuse(made.error());
    local.token = *made;
  }
  const auto runtime = environment.find("XDG_RUNTIME_DIR");
  auto file = LocalServerFile::create(
      runtime_folder(runtime == environment.end() ? "" : runtime->second), local);
  if (!file && !token) {
    return refuse(file.error(),
                  "the token that operators need can't be kept; --token-file gives one, "
                  "XDG_RUNTIME_DIR another folder: ");
  }
  if (!file) logger->warn("musterctl must be given --server: {}", file.error().message);

  ServerBoard board(**server);
  Control control(loop, board, {.token = token ? *token : *local.token}, *logger);
  (*server)->on_grpc([&control](posix::Fd socket, std::string peer) {
    control.adopt(std::move(socket), std::move(peer));
  });
  (*server)->on_note([&control](const Rendezvous::Note& note) { control.noted(note); });
  (*server)->on_ended([&](const std::string& job, const Verdict& verdict) {
    const auto ended = writer ? (*server)->ended(job) : std::nullopt;
    if (ended) writer->keep(job, encode_kept(*ended));
    control.ended(job, verdict);
  });
  EndBySignal end(loop, std::move(*signals), *logger);

  const auto at = to_string(endpoint);
  if (!posix::write_within(1, "musterd listening on " + at + "\n", posix::kReadPatience)) {
    logger->warn("nobody reads our standard output: listening on {}", at);
  }
  if (recovers) {
    const std::chrono::duration<double> recovery = options.max_lease * kRecovery;
    logger->info(
        "recovering: nodes may still hold rounds of a server before this one; new rounds form in "
        "{:.0f} s at the latest{}",
        recovery.count(), state ? "" : "; --state-folder would remember whether there was one");
  }
  (*manager)->ready("listening on " + at);
  loop.run();

  (*manager)->stopping();
  (*server)->stop();  // First: from then on nothing is answered or ordered.
  control.stop();
  if (writer) writer->finish();
  return 0;
}

int run(std::span<const std::string> argv) {
  const auto environment = read_environment();
  const auto parsed = parse_daemon_options(argv, environment);
  if (const auto* end = std::get_if<PrintAndEnd>(&parsed)) return leave(*end);
  return serve(std::get<DaemonOptions>(parsed), environment);
}

}  // namespace
}  // namespace muster::rendezvous

int main(int argc, char** argv) {
  try {
    return muster::rendezvous::run(std::vector<std::string>(argv, argv + argc));
  } catch (const boost::system::system_error& error) {
    // Of Asio, whose loop needs descriptors: the system has none left.
    return muster::rendezvous::refuse({muster::Errc::Internal, error.what()});
  }
}
