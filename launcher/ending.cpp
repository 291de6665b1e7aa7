#include "launcher/ending.hpp"

#include "base/posix/stream.hpp"
#include "base/posix/wall_clock.hpp"
#include "base/posix/whole_file.hpp"
#include "base/text.hpp"
#include "launcher/parent_error.hpp"
#include "launcher/report.hpp"

#include <utility>

namespace muster::launcher {
namespace {

constexpr const char* kTerminationLog = "/dev/termination-log";
/// Kubernetes reads no more of it.
constexpr std::size_t kTerminationLogBytes = 4096;

/// Whether a program that the user named is an interpreter: `muster python3 train.py`.
bool is_python(const std::string& path) {
  return path.substr(path.rfind('/') + 1).starts_with("python");
}

/// Whole lines from the beginning, where the cause stands.
std::string_view beginning_of(std::string_view text) {
  if (text.size() <= kTerminationLogBytes) return text;
  text = text.substr(0, kTerminationLogBytes);
  return text.substr(0, text.rfind('\n') + 1);
}

}  // namespace

void say_last(std::string text, const agent::JsonFormat* json) {
  if (json != nullptr)
    text = json->own_line("error", text.substr(0, text.find_last_not_of('\n') + 1));
  (void)posix::write_within(2, text, posix::kReadPatience);
}

Ending::Ending(std::string job, EndFiles files, const Program& program, std::string_view version,
               Logger& logger, const agent::JsonFormat* json)
    : files_(std::move(files)), program_(program), version_(version), logger_(logger), json_(json) {
  facts_.id = std::move(job);
  facts_.began_at = posix::wall_now();
  facts_.python = program.python;
  if (!facts_.python && is_python(program.path))
    facts_.python = ChosenPython{.path = program.path, .why = "named on the command line"};
  facts_.err_on_terminal = posix::is_terminal(2);
}

void Ending::tell(const Verdict& verdict, const std::string& recorded) {
  facts_.took = std::chrono::steady_clock::now() - began_;
  facts_.command = shell_text(
      worker_command(program_, verdict.cause ? verdict.cause->local_rank : LocalRank{0}).argv);
  std::string block;
  if (verdict.exit_code != 0) {
    block = closing_block(verdict, facts_);
    say_last(block, json_);
  }
  write(verdict, block, recorded);
}

void Ending::keep(int exit_code, const std::string& message, std::string_view line) {
  facts_.took = std::chrono::steady_clock::now() - began_;
  Verdict verdict;
  verdict.exit_code = exit_code;
  verdict.summary = message;
  verdict.alone = true;
  write(verdict, line, {});
}

void Ending::write(const Verdict& verdict, std::string_view text, const std::string& recorded) {
  facts_.ended_at = posix::wall_now();
  const auto warn_unless = [this](const Result<void>& written, std::string_view what) {
    if (!written) logger_.warn("{}: {}", what, printable(written.error().message));
  };
  if (!files_.report.empty()) {
    warn_unless(posix::replace_file(files_.report, report(verdict, facts_, version_)), "--report");
  }
  if (verdict.exit_code == 0) return;
  if (const auto& path = files_.parent_error; !path.empty()) {
    if (posix::file_exists(path)) logger_.warn("replacing the error file {}", printable(path));
    warn_unless(posix::replace_file(path, parent_error(verdict, recorded, facts_.ended_at)),
                "TORCHELASTIC_ERROR_FILE");
  }
  if (posix::file_exists(kTerminationLog))
    warn_unless(posix::overwrite_file(kTerminationLog, beginning_of(text)), "termination log");
}

}  // namespace muster::launcher
