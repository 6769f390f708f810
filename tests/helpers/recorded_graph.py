"""A CUDA graph in Python: operations are recorded while work is captured, and repeated later.

As a CUDA graph, it repeats the same operations on the same memory with the same numbers of the
program, and the captured work is not done. It refuses to wait for the device, and to read tensors
of the CPU, which have other places when the graph is launched.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.helpers.simulated_cuda.host_waits import number_of_waits


class GraphRecorder:
    """Captures work, as the function `capture` of a `CaptureSwitch`.

    Args:
        fail_at: number of the capture that fails, from 1; 0: none.
    """

    def __init__(self, fail_at: int = 0) -> None:
        self.fail_at = fail_at
        self.num_captures = 0
        self.num_replays = 0

    def __call__(self, work: Callable[[], None]) -> Callable[[], None]:
        self.num_captures += 1
        recording = _Recording()
        with recording:
            work()
            if self.num_captures == self.fail_at:
                recording.undo()
                raise RuntimeError("CUDA error: operation failed due to a previous error\nmore")
        recording.undo()

        def replay() -> None:
            self.num_replays += 1
            recording.replay()

        return replay


class _Recording(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, Any, Any, list[Tensor]]] = []
        self.created: set[int] = set()  # storages of the graph itself
        self.before: dict[int, tuple[Tensor, Tensor]] = {}  # a written tensor and its copy

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        inputs = _tensors((args, kwargs))
        if any(x.is_cpu and x.dim() for x in inputs):
            raise RuntimeError(f"a captured operation reads a tensor of the CPU: {func}")
        self._keep_written(func, args, kwargs)
        result = func(*args, **kwargs)
        if number_of_waits(func, args, result):
            raise RuntimeError(f"operation not permitted when stream is capturing: {func}")
        storages = {_storage(x) for x in inputs}
        outputs = _tensors(result)
        if all(_storage(x) not in storages for x in outputs):
            self.created.update(map(_storage, outputs))
        else:
            outputs = []
        self.calls.append((func, args, kwargs, outputs))
        return result

    def _keep_written(self, func: Any, args: Any, kwargs: Any) -> None:
        for i, argument in enumerate(func._schema.arguments):
            if argument.alias_info and argument.alias_info.is_write:
                x = args[i] if i < len(args) else kwargs[argument.name]
                if _storage(x) not in self.created and _storage(x) not in self.before:
                    whole = torch.empty(0, dtype=torch.uint8, device=x.device)
                    whole.set_(x.untyped_storage())
                    self.before[_storage(x)] = whole, whole.clone()

    def undo(self) -> None:
        """Restores what was written while the work was captured."""
        for x, copy in self.before.values():
            x.copy_(copy)

    def replay(self) -> None:
        for func, args, kwargs, outputs in self.calls:
            result = func(*args, **kwargs)
            for x, new in zip(outputs, _tensors(result) if outputs else [], strict=True):
                x.copy_(new)


def _tensors(tree: Any) -> list[Tensor]:
    return [x for x in tree_leaves(tree) if isinstance(x, Tensor)]


def _storage(x: Tensor) -> int:
    return x.untyped_storage()._cdata
