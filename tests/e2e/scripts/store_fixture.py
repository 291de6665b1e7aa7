"""What the cases of store_cases.py share."""

import datetime
import os
import traceback

import torch.distributed as dist
from case_list import SOON

SHORT = datetime.timedelta(seconds=0.3)  # For what must time out.
LONG = datetime.timedelta(seconds=SOON)
MIB = 1 << 20


class Clients:
    """Makes clients of the store, and names for keys."""

    def __init__(self, port):
        self.port = port
        self.names = 0

    def tcp_store(self):
        return dist.TCPStore("127.0.0.1", self.port, timeout=LONG, wait_for_workers=False)

    def connect(self):
        """Two clients that see the same keys, which no other case sees."""
        self.names += 1
        name = f"case {self.names}"
        return dist.PrefixStore(name, self.tcp_store()), dist.PrefixStore(name, self.tcp_store())

    def children(self, function, count):
        """Forks processes that call a function with their number and leave at once, 0 if it came
        back. They exit without the interpreter's farewell, as a client that is in a hurry."""
        pids = []
        for number in range(count):
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    function(number)
                    code = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(code)
            pids.append(pid)
        return pids
