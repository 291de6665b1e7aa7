#include "agent/core/evidence.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <string_view>
#include <utility>

namespace muster::agent {
namespace {

/// How PyTorch, Gloo and NCCL say that another rank went away. A worker whose last words are one of
/// these is a victim.
constexpr std::array<std::string_view, 9> kPeerLossWords = {
    "Connection closed by peer",
    "Connection reset by peer",
    "Broken pipe",
    "remote process exited",
    "ncclRemoteError",
    "caused pair closure",
    "Socket Timeout",
    "Connection refused",
    "recvBytes",
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

bool speaks_of_lost_peer(std::string_view text) {
  return std::any_of(kPeerLossWords.begin(), kPeerLossWords.end(), [text](std::string_view words) {
    return text.find(words) != std::string_view::npos;
  });
}

bool last_words_speak_of_lost_peer(const Observed& observed, const std::string& traceback) {
  if (!traceback.empty()) return speaks_of_lost_peer(traceback);
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
  } else if (observed.status.signal != 0 && !is_own_fault(observed.status.signal)) {
    failure.cause = Cause::OutsideSignal;
    failure.detail = "the signal came from outside the job";
  } else if (last_words_speak_of_lost_peer(observed, failure.traceback)) {
    failure.cause = Cause::PeerLoss;
    failure.detail = "it reports the loss of a peer";
  } else {
    failure.cause = Cause::WorkerError;
  }
  failure.stderr_lines = std::move(observed.stderr_lines);
  failure.log_file = std::move(observed.log_file);
  return failure;
}

std::string python_traceback(const std::vector<std::string>& lines) {
  constexpr std::string_view kHead = "Traceback (most recent call last):";
  const auto head = std::find_if(lines.rbegin(), lines.rend(), [kHead](const std::string& line) {
    return line.find(kHead) != std::string::npos;
  });
  if (head == lines.rend()) return {};
  const auto first = head.base() - 1;
  // What stands before the head on its line (a rank's prefix, say) stands before the rest as well.
  const auto indent = first->find(kHead);
  std::string text(kHead);
  for (auto line = first + 1; line != lines.end(); ++line) {
    const std::string body = line->size() >= indent ? line->substr(indent) : std::string();
    text += "\n" + body;
    if (!body.empty() && body.front() != ' ') break;  // `ValueError: ...` ends it.
  }
  return text;
}

}  // namespace muster::agent
