"""Counts of the places at which a program waits for a CUDA device."""

from collections import Counter
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.helpers.library_frames import library_lines

# operations whose result has a size that only the device knows, or is read by the program
READS = {
    "aten::_local_scalar_dense",
    "aten::nonzero",
    "aten::masked_select",
    "aten::bincount",
    "aten::equal",
    "aten::_unique2",
    "aten::unique_dim",
    "aten::unique_consecutive",
}


class HostWaits(TorchDispatchMode):
    """Counts waits of this thread for results of CUDA tensors, by line of the library.

    A wait is a copy to the CPU, a number that is read, and a size that depends on values, such as
    that of the rows that a mask selects. Copies to the device from memory that is not pinned, for
    which the program waits as well, are counted apart.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines = Counter[str]()
        self.copy_lines = Counter[str]()  # copies to the device

    @property
    def count(self) -> int:
        return self.lines.total()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if waits := number_of_waits(func, args, result):
            self.lines[_line(func)] += waits
        if _is_blocking_copy(func, args, kwargs or {}, result):
            self.copy_lines[_line(func)] += 1
        return result


def _line(func: Any) -> str:
    """The line of the library that calls an operation, and the operation."""
    lines = library_lines() or ["outside the library"]
    return f"{lines[-1]} {func._schema.name}"


def _is_blocking_copy(func: Any, args: Any, kwargs: Any, result: Any) -> bool:
    """Whether an operation copies a tensor to the device and waits until that is done."""
    name = func._schema.name
    first = args[0] if args and isinstance(args[0], Tensor) else None
    if first is None:
        return False
    if name == "aten::_to_copy":
        return first.is_cpu and result.is_cuda and not kwargs.get("non_blocking")
    if name == "aten::copy_":
        is_async = kwargs.get("non_blocking") or args[2:3] == (True,)
        return first.is_cuda and args[1].is_cpu and not is_async
    if name.rstrip("_") in ("aten::index", "aten::index_put"):
        return first.is_cuda and any(isinstance(x, Tensor) and x.is_cpu for x in args[1])
    return False


def number_of_waits(func: Any, args: Any, result: Any) -> int:
    """How often the program waits for a CUDA tensor in an operation."""
    name = func._schema.name
    first = args[0] if args and isinstance(args[0], Tensor) else None
    if name == "aten::copy_":
        return int(first is not None and first.is_cpu and args[1].is_cuda)
    if name == "aten::repeat_interleave":
        return int(first is not None and first.is_cuda)
    if first is None or not first.is_cuda:
        return 0
    if name == "aten::_to_copy":
        return int(isinstance(result, Tensor) and result.is_cpu)
    if name.rstrip("_") in ("aten::index", "aten::index_put", "aten::_index_put_impl"):
        masks = [x for x in args[1] if isinstance(x, Tensor) and x.dtype == torch.bool]
        return sum(mask.is_cuda for mask in masks)
    return int(name in READS)
