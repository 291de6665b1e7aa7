"""PyTorch's own store server (libuv): prints its port, serves until standard input is closed."""

import resource
import sys

from torch.distributed import TCPStore

_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
store = TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False, use_libuv=True)
print(store.port, flush=True)
sys.stdin.read()
