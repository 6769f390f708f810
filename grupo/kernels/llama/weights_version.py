"""Versions of a model's weights: cached results are valid for the version that computed them."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class WeightsVersion:
    """Identifies the current values of weights; two versions are equal if nothing was written.

    The version is read from the weights themselves, so that no writer has to announce a change.
    torch counts the in-place operations on a tensor, but not fused optimizer steps, writes to
    `.data` and writes by C code. The checksums detect such a write if it changes the sum of the
    bits, as a step of an optimizer does. They do not detect that values have changed places.

    Args:
        writes: address and number of counted in-place operations of each weight.
        checksums: sum of the bits of each weight as 64-bit integers.
        dtype: type in which they are multiplied.
    """

    writes: tuple[tuple[int, int], ...]
    checksums: tuple[int, ...]
    dtype: torch.dtype

    @classmethod
    def of(cls, weights: Iterable[Tensor], dtype: torch.dtype = torch.float32) -> "WeightsVersion":
        """The version of some weights; reads each of them once."""
        weights = tuple(weights)
        writes = tuple((weight.data_ptr(), weight._version) for weight in weights)
        return cls(writes, tuple(map(_checksum, weights)), dtype)


def _checksum(weight: Tensor) -> int:
    bits = weight.detach().flatten()
    offset = int(bits.storage_offset()) * bits.element_size()  # in bytes
    is_aligned = bits.nbytes % 8 == 0 and offset % 8 == 0
    # summing bytes is slow, but weights of an odd number of 32-bit entries are small
    integers = bits.view(torch.int64 if is_aligned else torch.uint8)
    return int(integers.sum())
