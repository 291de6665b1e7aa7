#include "agent/core/known_failures.hpp"

#include "base/exit_codes.hpp"
#include "base/failure_text.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <csignal>

namespace muster::agent {
namespace {

/// A failure is of this kind where a line has one of `words` and, unless that is empty, `with`.
struct Kind {
  std::array<std::string_view, 8> words;  // The empty ones at the end are none.
  std::string_view with;
  std::string_view hint;
};

constexpr std::string_view kSharedMemoryHint =
    "/dev/shm is full or too small, and data loaders and NCCL need it: give the container more "
    "(docker --shm-size=8g or --ipc=host, a memory-backed emptyDir in Kubernetes), or take fewer "
    "loader workers";
constexpr std::string_view kFewerFilesHint =
    "more files are open than `ulimit -n` allows: raise it before starting muster, or call "
    "torch.multiprocessing.set_sharing_strategy('file_system')";
constexpr std::string_view kHostMemoryHint =
    "the machine's memory did not suffice, not that of a GPU: take fewer data loader workers or a "
    "smaller batch, or give the job more memory";

/// Of a line that fits several kinds the first counts: the more special ones stand above.
constexpr std::array kKinds{
    // GPU.
    Kind{{"CUDA out of memory", "CUDA error: out of memory", "torch.OutOfMemoryError",
          "torch.cuda.OutOfMemoryError", "HIP out of memory", "CUBLAS_STATUS_ALLOC_FAILED",
          "CUDNN_STATUS_ALLOC_FAILED", "'out of memory'"},
         "",
         "the GPU's memory is full: take a smaller batch, activation checkpointing or sharding; "
         "nvidia-smi shows whether another process uses the GPU as well"},
    Kind{{"invalid device ordinal"},
         "",
         "it chose a GPU that is not there: the workers are more than the visible GPUs, or the "
         "script does not choose by LOCAL_RANK; --nproc-per-node gpu starts one for each GPU"},
    Kind{{"No CUDA GPUs are available", "no CUDA-capable device is detected",
          "Found no NVIDIA driver"},
         "",
         "no GPU can be seen: look at CUDA_VISIBLE_DEVICES, at nvidia-smi, and at whether the "
         "container was given any"},
    Kind{{"CUDA driver version is insufficient", "NVIDIA driver on your system is too old"},
         "",
         "the NVIDIA driver is older than the CUDA of this PyTorch needs: update the driver, or "
         "install a PyTorch that was built for an older CUDA"},
    Kind{{"no kernel image is available", "is not compatible with the current PyTorch"},
         "",
         "this PyTorch, or an extension of it, was not built for this kind of GPU: install one "
         "that was"},
    Kind{{"Torch not compiled with CUDA enabled"},
         "",
         "this PyTorch is built for CPUs only: install one with CUDA, or check which Python runs"},
    Kind{{"system not yet initialized"},
         "CUDA",
         "the GPUs are not ready: on machines with NVSwitch the service nvidia-fabricmanager must "
         "run, in the version of the driver"},
    Kind{{"uncorrectable ECC error"},
         "",
         "the GPU's memory is faulty: take the machine out of service and have the GPU reset or "
         "replaced"},
    Kind{{"device-side assert triggered"},
         "",
         "a check in a GPU kernel failed, mostly an index out of range (a label, a token): "
         "CUDA_LAUNCH_BLOCKING=1 shows which call it was"},
    Kind{{"an illegal memory access was encountered", "unspecified launch failure",
          "misaligned address"},
         "",
         "a GPU kernel went astray, earlier than the line that reports it: CUDA_LAUNCH_BLOCKING=1 "
         "shows which call it was"},

    // Collectives.
    Kind{{"Duplicate GPU detected"},
         "",
         "two ranks use the same GPU: each must choose its own by LOCAL_RANK before the first "
         "collective (torch.cuda.set_device)"},
    Kind{
        {"Watchdog caught collective operation timeout", "NCCL operations have failed or timed out",
         "ProcessGroupNCCL watchdog hang", "ProcessGroupNCCL's watchdog got stuck"},
        "",
        "a collective did not finish in time: some rank was slower, had stopped, or made another "
        "call; look for the rank that reports no time-out"},
    Kind{{"ncclRemoteError", "remote process exited or there was a network error"},
         "",
         "the rank at the other end went away, or the network between did: another rank's failure "
         "is mostly the cause"},
    Kind{{"ncclSystemError", "unhandled system error"},
         "",
         "a system call in NCCL failed, mostly of a socket or of shared memory: NCCL_DEBUG=WARN "
         "tells which; check NCCL_SOCKET_IFNAME and the room in /dev/shm"},
    Kind{{"ncclUnhandledCudaError", "unhandled cuda error"},
         "",
         "a CUDA call in NCCL failed: NCCL_DEBUG=WARN tells which; mostly GPU memory is full, the "
         "driver is too old, or a GPU is not in order"},
    Kind{{"ncclInvalidUsage", "ncclInvalidArgument", "invalid usage, NCCL"},
         "",
         "NCCL was used wrongly, mostly by two ranks on one GPU or by ranks that disagree on a "
         "call: NCCL_DEBUG=WARN tells what"},
    Kind{{"ncclInternalError", "internal error, NCCL"},
         "",
         "a fault inside NCCL, or of its network: NCCL_DEBUG=INFO tells where; see whether all "
         "nodes have the same NCCL and the same network plug-in"},
    Kind{{"clients joined", "Timed out waiting for clients"},
         "",
         "not all workers came to the store in time: one was late, or does not call "
         "init_process_group"},

    // Files, memory and other limits.
    Kind{{"Too many open files", "[Errno 24]", "received 0 items of ancdata"}, "", kFewerFilesHint},
    Kind{{"shared memory object", "/dev/shm"},
         "Permission denied",
         "/dev/shm can't be written to by this user: it should have mode 1777; look for files of "
         "another user there"},
    Kind{{"unable to allocate shared memory", "out of shared memory", "insufficient shared memory",
          "is killed by signal: Bus error", "creating shared memory segment",
          "unable to write to file </torch_"},
         "",
         kSharedMemoryHint},
    Kind{{"/dev/shm"}, "No space left on device", kSharedMemoryHint},
    Kind{{"No space left on device", "[Errno 28]", "ENOSPC"},
         "",
         "a disk is full, or has no inodes left: `df -h` and `df -i` show which; the line above "
         "mostly names the file"},
    Kind{{"Disk quota exceeded", "[Errno 122]", "EDQUOT"},
         "",
         "the user's quota on that file system is used up: `quota -s` shows it"},
    Kind{{"Read-only file system", "[Errno 30]"},
         "",
         "it writes to a file system that can only be read: give it another folder"},
    Kind{{"Stale file handle", "[Errno 116]", "Transport endpoint is not connected"},
         "",
         "a network file system lost a file, or its server: mount it anew, and see whether "
         "something removes files while they are read"},
    Kind{{"is killed by signal: Killed"},
         "",
         "a data loader was killed, mostly by the kernel for the machine's memory: take fewer "
         "loader workers, a smaller prefetch_factor, or more memory"},
    Kind{{"DataLoader worker (pid"},
         "exited unexpectedly",
         "a data loader's process died: with num_workers=0 its error shows in the worker itself"},
    Kind{{"MemoryError", "std::bad_alloc", "Cannot allocate memory", "[Errno 12]",
          "can't allocate memory", "DefaultCPUAllocator: not enough memory"},
         "",
         kHostMemoryHint},
    Kind{{"can't start new thread", "pthread_create failed", "libgomp: Thread creation failed",
          "[Errno 11] Resource temporarily unavailable", "fork: Resource temporarily unavailable",
          "fork: retry: Resource temporarily unavailable"},
         "",
         "no more threads or processes are allowed: see `ulimit -u`, and pids.max of the container "
         "or cgroup"},

    // The network.
    Kind{{"EADDRINUSE", "ddress already in use", "[Errno 98]", "errno: 98"},
         "",
         "a port that it listens at is taken (`ss -ltnp` shows by whom); at MASTER_PORT muster "
         "itself serves, unless --worker-store torch leaves that to rank 0"},
    Kind{{"Name or service not known", "Temporary failure in name resolution",
          "nodename nor servname provided"},
         "",
         "a host name can't be looked up from this machine: see its DNS and /etc/hosts"},

    // What is installed.
    Kind{{"ModuleNotFoundError", "No module named"},
         "",
         "the module is not installed for this Python; install it there, or name another Python in "
         "PYTHON_EXEC"},
    Kind{{"GLIBC_", "GLIBCXX_", "CXXABI_"},
         "not found",
         "a library was built for a newer system than this one: install a build for it, or use a "
         "container"},
    Kind{{"cannot open shared object file"},
         "",
         "a shared library is missing: install it, or add its folder to LD_LIBRARY_PATH"},
    Kind{{"undefined symbol"},
         "",
         "libraries of different builds are mixed: reinstall the extension for the PyTorch that is "
         "used here"},
    Kind{{"arguments are required: --local_rank", "arguments are required: --local-rank"},
         "",
         "the script wants its local rank as an argument: --pass-local-rank gives it"},
    Kind{{"unrecognized arguments: --local_rank", "unrecognized arguments: --local-rank"},
         "",
         "the script does not take the local rank as an argument: leave --pass-local-rank out, or "
         "try its other spelling"},
};

/// Without a traceback so many of the last lines count. A C++ stack below an error is that long.
constexpr std::size_t kLastLines = 80;

bool has(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

bool fits(const Kind& kind, std::string_view line) {
  return has(line, kind.with) &&
         std::any_of(kind.words.begin(), kind.words.end(),
                     [line](std::string_view word) { return !word.empty() && has(line, word); });
}

std::string_view hint_in_line(std::string_view line) {
  const auto* const kind = std::find_if(kKinds.begin(), kKinds.end(),
                                        [line](const Kind& one) { return fits(one, line); });
  return kind == kKinds.end() ? std::string_view() : kind->hint;
}

/// Where the account of the end begins: at the head of the last traceback, or of the first one that
/// led to it.
std::size_t where_the_end_begins(const std::vector<std::string_view>& lines) {
  constexpr std::string_view kDuring = "During handling of the above exception";
  constexpr std::string_view kFrom = "The above exception was the direct cause";
  std::optional<std::size_t> begin;
  bool is_chained = true;
  for (auto at = lines.size(); at-- > 0;) {
    if (has(lines[at], kTracebackHead)) {
      if (!is_chained) break;
      begin = at;
      is_chained = false;
    } else if (has(lines[at], kDuring) || has(lines[at], kFrom)) {
      is_chained = true;
    }
  }
  return begin.value_or(lines.size() - std::min(lines.size(), kLastLines));
}

/// The newest line that is of a known kind decides.
std::string_view hint_in(const std::vector<std::string_view>& lines) {
  const auto begin = where_the_end_begins(lines);
  for (auto at = lines.size(); at-- > begin;) {
    if (const auto hint = hint_in_line(lines[at]); !hint.empty()) return hint;
  }
  return {};
}

std::string in_mebibytes(std::uint64_t bytes) {
  constexpr std::uint64_t kMebibyte = 1024 * 1024;
  return std::to_string(bytes / kMebibyte) + " MiB";
}

std::string hint_of_status(const ExitStatus& status) {
  switch (status.signal) {
    case 0:
      break;
    case SIGILL:
      return "it has instructions that this processor lacks: it, or a library, was built for "
             "another one";
    case SIGSEGV:
      return "a fault in native code: PYTHONFAULTHANDLER=1 shows the line of Python that led "
             "there, `ulimit -c unlimited` keeps a core";
    case SIGBUS:
      return "a file in memory was cut short, or there was no room behind it: mostly /dev/shm or a "
             "disk is full";
    case SIGXCPU:
      return "its processor time is limited: see `ulimit -t`";
    case SIGXFSZ:
      return "the size of its files is limited: see `ulimit -f`";
    default:
      return {};
  }
  if (status.code > kSignalBase && status.code - kSignalBase <= SIGSYS) {
    return "what a shell says of a program that was killed by " +
           signal_name(status.code - kSignalBase);
  }
  constexpr int kCanNotExecute = 126;
  constexpr int kNotFound = 127;
  if (status.code == kCanNotExecute)
    return "what a shell says of a program that is there but can't be executed: its mode, its "
           "format, or a mount with noexec";
  if (status.code == kNotFound)
    return "what a shell says of a program that it does not find: a name that is not on PATH, or a "
           "missing interpreter";
  return {};
}

}  // namespace

std::string out_of_memory_hint() { return std::string(kHostMemoryHint); }

std::string hint_for(const ExitStatus& status, std::string_view account,
                     const std::vector<std::string>& stderr_lines,
                     const std::optional<Room>& shared_memory) {
  std::string hint(hint_in(lines_of(account)));
  if (hint.empty()) hint = hint_in({stderr_lines.begin(), stderr_lines.end()});
  if (hint.empty()) hint = hint_of_status(status);
  // What was there is free again once the worker is dead: its size tells as much.
  constexpr std::uint64_t kSmall = std::uint64_t{1} << 30U;
  if (status.signal == SIGBUS && shared_memory &&
      (shared_memory->size < kSmall || shared_memory->free < shared_memory->size / 20)) {
    return "/dev/shm has " + in_mebibytes(shared_memory->size) + ", " +
           in_mebibytes(shared_memory->free) + " free: " + std::string(kSharedMemoryHint);
  }
  return hint;
}

}  // namespace muster::agent
