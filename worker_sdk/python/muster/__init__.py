"""What a worker under muster may tell its agent, and hear from it: see muster.beacon.

Another package or module of this name that Python would find without muster is what `import muster`
gives; `muster.beacon` is there beside it.
"""

import os
import sys
from importlib.machinery import PathFinder


def _be_the_other_muster():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    elsewhere = [entry for entry in sys.path if isinstance(entry, str) and os.path.abspath(entry) != here]
    spec = PathFinder.find_spec(__name__, elsewhere)
    if spec is None or spec.origin is None:  # None, or any folder of that name.
        return
    module = sys.modules[__name__]
    module.__path__ = [*(spec.submodule_search_locations or ()), *__path__]
    module.__file__ = spec.origin
    module.__loader__ = spec.loader
    module.__spec__ = spec
    spec.loader.exec_module(module)


_be_the_other_muster()
