"""Detection of writes that repeat an index, whose result depends on the order of threads."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.helpers.library_frames import library_lines

PLACES = 4  # lines of the library in a report


@dataclass(frozen=True)
class Write:
    """A write of `values` to the rows of `index` (n, dimensions) in a tensor.

    `accumulate`: repeated values are added up.
    """

    index: Tensor
    values: Tensor
    accumulate: bool = False

    @property
    def depends_on_order(self) -> bool:
        """Whether an index repeats with another value, or float values are added in any order."""
        if not len(self.index):
            return False
        _, which = self.index.unique(dim=0, return_inverse=True)
        flat = self.values.reshape(len(self.index), -1)
        last = torch.zeros(int(which.max()) + 1, dtype=torch.long)
        last[which.sort(stable=True).values] = which.argsort(stable=True)
        repeated = len(last) < len(which)
        if self.accumulate:
            return repeated and flat.dtype.is_floating_point
        return repeated and not torch.equal(flat, flat[last[which]])


def _index_put(
    x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False, *_: Any
) -> Write | None:
    tensors = [index for index in indices if index is not None]
    if any(index.dtype in (torch.bool, torch.uint8) for index in tensors):
        return None  # a mask repeats nothing
    first = next(i for i, index in enumerate(indices) if index is not None)
    if first or tensors != list(indices[: len(tensors)]):
        return Write(_rows(tensors), torch.arange(len(_rows(tensors))), accumulate)
    rows = _rows(tensors)
    shape = torch.broadcast_shapes(*[index.shape for index in tensors]) + x.shape[len(tensors) :]
    return Write(rows, values.expand(shape), accumulate)


def _rows(indices: Sequence[Tensor]) -> Tensor:
    return torch.stack([x.flatten() for x in torch.broadcast_tensors(*indices)], -1)


def _scatter(x: Tensor, dim: int, index: Tensor, values: Any, *_: Any) -> Write | None:
    if not index.ndim or not isinstance(values, Tensor):
        return None  # one value for all positions
    positions = torch.meshgrid(*map(torch.arange, index.shape), indexing="ij")
    rows = [index if i == dim % x.ndim else p for i, p in enumerate(positions)]
    return Write(_rows(rows), values[tuple(map(slice, index.shape))].flatten())


def _index_copy(x: Tensor, dim: int, index: Tensor, values: Tensor) -> Write:
    return Write(index[:, None], values.movedim(dim, 0))


WRITES: Mapping[str, Callable[..., Write | None]] = {
    "aten::index_put": _index_put,
    "aten::_index_put_impl": _index_put,
    "aten::_unsafe_index_put": _index_put,
    "aten::scatter": _scatter,
    "aten::index_copy": _index_copy,
}


class RepeatedIndexCheck(TorchDispatchMode):
    """Records every write of this thread whose result depends on the order of its rows.

    Where an index repeats, torch's threads decide which value remains, on every device. Sums into
    repeated rows are recorded, too, where torch adds them atomically (`index_put`); `index_add` and
    `scatter_add` add in order on a CPU.
    """

    def __init__(self) -> None:
        super().__init__()
        self.num_writes = 0
        self.reports: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        parse = WRITES.get(func._schema.name.rstrip("_"))
        write = parse(*args, **(kwargs or {})) if parse else None
        if write:
            self.num_writes += 1
        if write and write.depends_on_order:
            places = reversed(library_lines()[-PLACES:])
            self.reports.append(" < ".join([str(func), *places]))
        return func(*args, **(kwargs or {}))
