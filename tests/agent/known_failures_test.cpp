#include "agent/core/known_failures.hpp"

#include <csignal>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

using namespace muster;
using agent::hint_for;
using Lines = std::vector<std::string>;

namespace {

std::string hint(const Lines& lines, ExitStatus status = {.code = 1}) {
  return hint_for(status, "", lines, std::nullopt);
}

struct Sample {
  std::string line;  ///< As the library says it.
  std::string word;  ///< Which the hint has, and those of the other kinds have not.
};

const std::vector<Sample> kSamples = {
    // PyTorch 2.x, 1.13, 1.9.
    {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total "
     "capacity of 79.14 GiB of which 5.31 GiB is free.",
     "the GPU's memory is full"},
    {"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB (GPU 0; 23.70 "
     "GiB "
     "total capacity; 21.60 GiB already allocated)",
     "the GPU's memory is full"},
    {"RuntimeError: CUDA error: out of memory", "the GPU's memory is full"},
    {"RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
     "the GPU's memory is full"},
    {"node1:77:99 [0] include/alloc.h:185 NCCL WARN Cuda failure 2 'out of memory'",
     "the GPU's memory is full"},
    {"RuntimeError: CUDA error: invalid device ordinal", "--nproc-per-node gpu"},
    {"torch.AcceleratorError: CUDA error: invalid device ordinal", "--nproc-per-node gpu"},
    {"RuntimeError: No CUDA GPUs are available", "CUDA_VISIBLE_DEVICES"},
    {"RuntimeError: CUDA error: no CUDA-capable device is detected", "CUDA_VISIBLE_DEVICES"},
    {"RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA "
     "GPU",
     "CUDA_VISIBLE_DEVICES"},
    {"RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
     "update the driver"},
    {"cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version",
     "update the driver"},
    {"RuntimeError: CUDA error: no kernel image is available for execution on the device",
     "not built for this kind of GPU"},
    {"AssertionError: Torch not compiled with CUDA enabled", "built for CPUs only"},
    {"UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 802: "
     "system "
     "not yet initialized (Triggered internally at ../c10/cuda/CUDAFunctions.cpp:108.)",
     "nvidia-fabricmanager"},
    {"RuntimeError: CUDA error: uncorrectable ECC error encountered", "faulty"},
    {"RuntimeError: CUDA error: device-side assert triggered", "index out of range"},
    {"RuntimeError: CUDA error: an illegal memory access was encountered", "went astray"},
    // NCCL 2.10 to 2.27, and PyTorch's watchdog of 1.13 and 2.x.
    {"[E ProcessGroupNCCL.cpp:821] [Rank 1] Watchdog caught collective operation timeout: "
     "WorkNCCL(SeqNum=9, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1802710 milliseconds "
     "before "
     "timing out.",
     "did not finish in time"},
    {"RuntimeError: Some NCCL operations have failed or timed out. Due to the asynchronous nature "
     "of "
     "CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.",
     "did not finish in time"},
    {"Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1d000", "the same GPU"},
    {"ncclUnhandledCudaError: Call to CUDA function failed.", "a CUDA call in NCCL failed"},
    {"RuntimeError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1269, "
     "unhandled cuda error, NCCL version 2.14.3",
     "a CUDA call in NCCL failed"},
    {"ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device "
     "error.",
     "a system call in NCCL failed"},
    {"ncclInternalError: Internal check failed.", "a fault inside NCCL"},
    {"ncclInvalidUsage: This usually reflects invalid usage of NCCL library.",
     "NCCL was used wrongly"},
    {"ncclRemoteError: A call failed possibly due to a network error or a remote process exiting "
     "prematurely.",
     "went away"},
    {"torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients. 1/2 "
     "clients "
     "joined.",
     "not all workers came"},
    // Python, glibc, the kernel.
    {"OSError: [Errno 98] Address already in use", "a port"},
    {"torch.distributed.DistNetworkError: The server socket has failed to listen on any local "
     "network "
     "address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already "
     "in "
     "use",
     "a port"},
    {"RuntimeError: The server socket has failed to bind to [::]:29500 (errno: 98 - Address "
     "already "
     "in use).",
     "a port"},
    {"OSError: [Errno 28] No space left on device: 'ckpt.pt'", "a disk is full"},
    {"OSError: [Errno 122] Disk quota exceeded", "quota"},
    {"OSError: [Errno 24] Too many open files: 'a.bin'", "ulimit -n"},
    {"RuntimeError: unable to open shared memory object </torch_77_12> in read-write mode: Too "
     "many "
     "open files (24)",
     "ulimit -n"},
    {"RuntimeError: received 0 items of ancdata", "ulimit -n"},
    {"RuntimeError: unable to open shared memory object </torch_77_12> in read-write mode: "
     "Permission "
     "denied (13)",
     "mode 1777"},
    {"RuntimeError: unable to write to file </torch_18_3>: No space left on device (28)",
     "--shm-size"},
    {"RuntimeError: DataLoader worker (pid 133) is killed by signal: Bus error. It is possible "
     "that "
     "dataloader's workers are out of shared memory. Please try to raise your shared memory limit.",
     "--shm-size"},
    {"h:9:9 [0] misc/shmutils.cc:72 NCCL WARN Error while creating shared memory segment "
     "/dev/shm/nccl-GV4TqF (size 9637888), error: No space left on device (28)",
     "--shm-size"},
    {"RuntimeError: DataLoader worker (pid 99) is killed by signal: Killed. ",
     "a data loader was killed"},
    {"RuntimeError: DataLoader worker (pid(s) 8013, 8014) exited unexpectedly", "num_workers=0"},
    {"numpy.core._exceptions._ArrayMemoryError: Unable to allocate 1.00 TiB for an array",
     "memory did not suffice"},
    {"RuntimeError: [enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't "
     "allocate "
     "memory: you tried to allocate 99999999999 bytes.",
     "memory did not suffice"},
    {"  what():  std::bad_alloc", "memory did not suffice"},
    {"RuntimeError: can't start new thread", "ulimit -u"},
    {"OpenBLAS blas_thread_init: pthread_create failed for thread 7 of 64: Resource temporarily "
     "unavailable",
     "ulimit -u"},
    {"ModuleNotFoundError: No module named 'transformers'", "PYTHON_EXEC"},
    {"/usr/bin/python3: No module named train", "PYTHON_EXEC"},
    {"ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by "
     "x.so)",
     "a newer system"},
    {"ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory",
     "LD_LIBRARY_PATH"},
    {"ImportError: flash_attn_2_cuda.so: undefined symbol: _ZN3c104cuda9SetDeviceEi",
     "different builds"},
    {"socket.gaierror: [Errno -2] Name or service not known", "DNS"},
    {"train.py: error: the following arguments are required: --local_rank",
     "--pass-local-rank gives"},
    {"train.py: error: unrecognized arguments: --local-rank=0", "leave --pass-local-rank out"},
};

}  // namespace

TEST_CASE("a known failure is explained, whichever version words it", "[agent][hint]") {
  for (const auto& sample : kSamples) {
    INFO(sample.line);
    CHECK(hint({sample.line}).find(sample.word) != std::string::npos);
    // The word tells this kind from all others.
    for (const auto& other : kSamples) {
      INFO(other.line);
      if (other.word != sample.word)
        CHECK(hint({other.line}).find(sample.word) == std::string::npos);
    }
  }
}

TEST_CASE("an unknown failure has no hint", "[agent][hint]") {
  CHECK(hint({"ValueError: bad shape"}).empty());
  CHECK(hint({}).empty());
  CHECK(hint({}, {.signal = SIGTERM}).empty());
}

TEST_CASE("the exception counts, not what was survived before it", "[agent][hint]") {
  CHECK(hint({"CUDA out of memory: trying half the batch", "Traceback (most recent call last):",
              "  File \"a.py\", line 1", "ValueError: bad shape"})
            .empty());
  CHECK(!hint({"Traceback (most recent call last):", "  File \"a.py\", line 1",
               "OSError: [Errno 28] No space left on device", "",
               "During handling of the above exception, another exception occurred:", "",
               "Traceback (most recent call last):", "  File \"a.py\", line 3",
               "RuntimeError: could not save"})
             .empty());
  CHECK(hint({"Traceback (most recent call last):", "OSError: [Errno 28] No space left on device",
              "retrying", "Traceback (most recent call last):", "ValueError: bad shape"})
            .empty());
}

TEST_CASE("a C++ stack below the error does not hide it", "[agent][hint]") {
  Lines lines = {"[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)"};
  for (int frame = 0; frame < 40; ++frame) lines.push_back("frame #" + std::to_string(frame));
  CHECK(!hint(lines, {.signal = SIGABRT}).empty());
}

TEST_CASE("what the worker recorded is looked at before its stderr", "[agent][hint]") {
  const auto text = hint_for({.code = 1}, "Traceback\nRuntimeError: No CUDA GPUs are available",
                             {"OSError: [Errno 28] No space left on device"}, std::nullopt);
  CHECK(text.find("CUDA_VISIBLE_DEVICES") != std::string::npos);
}

TEST_CASE("a bus error where /dev/shm is small or full says so, with its size", "[agent][hint]") {
  constexpr std::uint64_t kMebibyte = 1024 * 1024;
  const auto with = [](agent::Room room) { return hint_for({.signal = SIGBUS}, "", {}, room); };
  CHECK(with({64 * kMebibyte, 64 * kMebibyte}).starts_with("/dev/shm has 64 MiB, 64 MiB free"));
  CHECK(with({64000 * kMebibyte, kMebibyte}).starts_with("/dev/shm has 64000 MiB, 1 MiB free"));
  CHECK(!with({64000 * kMebibyte, 60000 * kMebibyte}).starts_with("/dev/shm has"));
  CHECK(!hint_for({.signal = SIGSEGV}, "", {}, agent::Room{64 * kMebibyte, 0}).starts_with("/dev"));
}

TEST_CASE("what a shell says by its exit code is explained where nothing else is known",
          "[agent][hint]") {
  CHECK(hint({"./run.sh: 3: frobnicate: not found"}, {.code = 127}).find("PATH") !=
        std::string::npos);
  CHECK(hint({}, {.code = 137}) == "what a shell says of a program that was killed by SIGKILL");
  CHECK(hint({}, {.code = 255}).empty());
  CHECK(hint({}, {.code = 126}).find("noexec") != std::string::npos);
  CHECK(hint({"OSError: [Errno 28] No space left on device"}, {.code = 127}).find("disk") !=
        std::string::npos);
}
