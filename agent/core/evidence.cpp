#include "agent/core/evidence.hpp"

#include "base/failure_text.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <string_view>
#include <utility>

namespace muster::agent {
namespace {

/// How Gloo and NCCL say that another rank went away. A worker whose last words are these is a
/// victim.
constexpr std::array<std::string_view, 4> kPeerLossWords = {
    "Connection closed by peer",
    "remote process exited or there was a network error",
    "ncclRemoteError",
    "caused pair closure",
};
/// What any program may say of any connection, and what tells that it was one between ranks.
constexpr std::array<std::string_view, 4> kConnectionWords = {
    "Connection reset by peer",
    "Connection refused",
    "Broken pipe",
    "Socket Timeout",
};
constexpr std::array<std::string_view, 6> kCollectiveWords = {
    "gloo", "NCCL", "c10d", "TCPStore", "DistBackendError", "DistNetworkError",
};

/// How many of the last lines count as last words.
constexpr std::size_t kLastWords = 20;

/// Signals that a process raises against itself, by a fault or abort(); any other came from
/// outside.
bool is_own_fault(int signal) {
  switch (signal) {
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGABRT:
    case SIGTRAP:
    case SIGSYS:
    case SIGPIPE:
    case SIGXFSZ:
    case SIGXCPU:
      return true;
    default:
      return false;
  }
}

template <std::size_t N>
bool has_one_of(const std::array<std::string_view, N>& words, std::string_view text) {
  return std::any_of(words.begin(), words.end(), [text](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

bool speaks_of_lost_peer(std::string_view line) {
  return has_one_of(kPeerLossWords, line) ||
         (has_one_of(kConnectionWords, line) && has_one_of(kCollectiveWords, line));
}

/// Where there is a traceback its last line counts, the exception; else the last lines of stderr.
bool last_words_speak_of_lost_peer(const Observed& observed, std::string_view traceback) {
  if (!traceback.empty()) return speaks_of_lost_peer(exception_of(traceback));
  const auto& lines = observed.stderr_lines;
  const auto from = lines.size() - std::min(lines.size(), kLastWords);
  return std::any_of(lines.begin() + static_cast<std::ptrdiff_t>(from), lines.end(),
                     speaks_of_lost_peer);
}

}  // namespace

WorkerFailure assess(Observed observed) {
  WorkerFailure failure;
  failure.pid = observed.pid;
  failure.status = observed.status;
  failure.traceback =
      observed.recorded.empty() ? python_traceback(observed.stderr_lines) : observed.recorded;
  if (!observed.out_of_memory.empty()) {
    failure.cause = Cause::OutOfMemory;
    failure.detail = observed.out_of_memory;
    failure.hint = out_of_memory_hint();
  } else if (!observed.expired_timer.empty()) {
    failure.cause = Cause::WorkerError;
    failure.detail = observed.expired_timer;
  } else if (observed.status.signal != 0 && !is_own_fault(observed.status.signal)) {
    failure.cause = Cause::OutsideSignal;
    failure.detail = observed.was_passed_on
                         ? "muster passed that signal on, and the worker does not handle it"
                         : "the signal came from outside the job";
  } else if (observed.has_peers && last_words_speak_of_lost_peer(observed, failure.traceback)) {
    failure.cause = Cause::PeerLoss;
    failure.detail = "it reports the loss of a peer";
  } else {
    failure.cause = Cause::WorkerError;
  }
  if (failure.cause == Cause::WorkerError || failure.cause == Cause::PeerLoss) {
    failure.hint =
        hint_for(observed.status, observed.recorded, observed.stderr_lines, observed.shared_memory);
  }
  failure.ended_at = observed.ended_at;
  failure.stderr_lines = std::move(observed.stderr_lines);
  failure.log_file = std::move(observed.log_file);
  return failure;
}

std::string python_traceback(const std::vector<std::string>& lines) {
  const auto head = std::find_if(lines.rbegin(), lines.rend(), [](const std::string& line) {
    return line.find(kTracebackHead) != std::string::npos;
  });
  if (head == lines.rend()) return {};
  const auto first = head.base() - 1;
  // What stands before the head on its line may stand before the rest as well (a rank's prefix), or
  // not ("Original Traceback" of a data loader).
  const auto prefix = first->substr(0, first->find(kTracebackHead));
  std::string text(kTracebackHead);
  for (auto line = first + 1; line != lines.end(); ++line) {
    const auto body = line->starts_with(prefix) ? line->substr(prefix.size()) : *line;
    text += "\n" + body;
    if (!body.empty() && body.front() != ' ') break;  // `ValueError: ...` ends it.
  }
  return text;
}

}  // namespace muster::agent
