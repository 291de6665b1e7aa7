"""Counts the steps of PyTorch's optimizers for the beacon, for scripts that tell nothing themselves (--track-steps).

Each optimizer has a count of its own, and the highest is told: two that step in turn are one step. An optimizer that
was loaded from a checkpoint counts on from what its state says, where that says anything (Adam's does, SGD's does not).
"""

import functools
import sys

from muster import beacon

_COUNT = "_muster_steps"
_INSIDE = "_muster_is_stepping"
_is_on = True


def begin(optimizer_module):
    """Called once torch.optim has been imported."""
    try:
        if hasattr(optimizer_module, "register_optimizer_step_post_hook"):
            optimizer_module.register_optimizer_step_post_hook(_count)
        else:
            _count_steps_of_each_class(optimizer_module.Optimizer)
    except Exception as error:
        give_up(error)


def give_up(error):
    global _is_on
    _is_on = False
    print(f"muster: --track-steps counts no steps: {type(error).__name__}: {error}", file=sys.stderr)


def _count(optimizer, *_):
    if not _is_on:
        return
    try:
        own = optimizer.__dict__
        count = own[_COUNT] + 1 if _COUNT in own else _steps_in_state(optimizer)
        own[_COUNT] = count
        beacon._count_step(count)
    except Exception as error:
        give_up(error)


# torch.compile is to call it as it is.
_count._torchdynamo_disable = True


def _steps_in_state(optimizer):
    """After the first step that is seen. A look at the first parameter is enough."""
    for state in optimizer.state.values():
        steps = state.get("step") if isinstance(state, dict) else None
        if steps is None:
            break
        if getattr(steps, "is_cuda", False) and sys.modules["torch"].cuda.is_current_stream_capturing():
            break  # To read it now would spoil the graph.
        return max(int(steps), 1)
    return 1


def _count_steps_of_each_class(base):
    """PyTorch before 2.0: every new optimizer passes here, and its class gets a step that counts."""
    prepare = base._hook_for_profile

    @functools.wraps(prepare)
    def prepare_and_wrap(self, *args, **kwargs):
        result = prepare(self, *args, **kwargs)
        try:
            _wrap_step(type(self))
        except Exception as error:
            give_up(error)
        return result

    base._hook_for_profile = prepare_and_wrap


def _wrap_step(optimizer_class):
    step = optimizer_class.step
    if hasattr(step, _COUNT):
        return

    @functools.wraps(step)
    def counted(self, *args, **kwargs):
        if self.__dict__.get(_INSIDE):  # A step that calls its base class's.
            return step(self, *args, **kwargs)
        self.__dict__[_INSIDE] = True
        try:
            result = step(self, *args, **kwargs)
        finally:
            self.__dict__[_INSIDE] = False
        _count(self)
        return result

    setattr(counted, _COUNT, True)
    optimizer_class.step = counted
