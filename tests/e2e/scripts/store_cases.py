"""store_cases.py PORT: what a PyTorch client can ask of a store, asked of 127.0.0.1:PORT.

Run by store_clients_test.py with each version of PyTorch. Each case has a name space of its own.
"""

import sys

import store_keys  # Each import adds its cases to the list.
import store_newer
import store_waits
from case_list import outcomes, report
from store_fixture import Clients

if __name__ == "__main__":
    for name, problem in outcomes(Clients(int(sys.argv[1]))):
        report(name, problem)
