"""Run by each Python that a worker of `muster --track-steps` starts: waits for torch.optim, and then runs what would
have been run in its place. Whatever goes wrong here, the script runs as without it.
"""

import os
import sys
from importlib.machinery import PathFinder

_HERE = os.path.dirname(os.path.abspath(__file__))
_AWAITED = "torch.optim"


class _Waiting:
    """Among the finders of modules: finds nothing by itself, but sees that the awaited one is imported."""

    def __init__(self):
        self._is_asking = False

    def find_spec(self, name, path=None, target=None):
        if name != _AWAITED or self._is_asking:
            return None
        self._is_asking = True
        try:
            return self._watched(self._found_by_others(name, path, target))
        finally:
            self._is_asking = False

    def _found_by_others(self, name, path, target):
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                return spec
        return None

    def _watched(self, spec):
        try:
            execute = spec.loader.exec_module

            def execute_and_begin(module):
                execute(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                    _begin()

            spec.loader.exec_module = execute_and_begin
        except AttributeError:  # No spec, or one that can't be watched.
            pass
        return spec


def _begin():
    try:
        import muster

        own = os.path.join(_HERE, "muster")
        if own not in muster.__path__:  # Another package of that name came first.
            muster.__path__.append(own)
        from muster import tracking

        tracking.begin(sys.modules["torch.optim.optimizer"])
    except Exception as error:
        print(f"muster: --track-steps counts no steps: {type(error).__name__}: {error}", file=sys.stderr)


def _run_the_users_own():
    """The sitecustomize that Python would have found without ours."""
    spec = PathFinder.find_spec("sitecustomize")
    if spec is None or spec.loader is None:
        return
    from importlib.util import module_from_spec

    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if os.environ.get("MUSTER_BEACON"):
    sys.meta_path.insert(0, _Waiting())
# The user's own modules are found first from now on, a sitecustomize among them.
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _HERE]
try:
    _run_the_users_own()
finally:
    sys.path.append(_HERE)  # For the module muster.
