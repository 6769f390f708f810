"""Versions of weights change with every write, also with those that torch does not count."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from grupo.kernels.llama.weights_version import WeightsVersion


def weights(dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Weights with even and odd numbers of entries, and one without entries."""
    torch.manual_seed(0)
    shapes = (4, 6), (5,), (3, 3), (0,), ()
    return [torch.randn(shape).to(dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_version_stays_the_same_without_a_write(dtype):
    own = weights(dtype)
    assert WeightsVersion.of(own) == WeightsVersion.of(own)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("number", [0, 1, 2, 4])
def test_changed_last_bit_changes_the_version_although_torch_counts_no_write(number, dtype):
    own = weights(dtype)
    before, writes = WeightsVersion.of(own), own[number]._version
    entries = own[number].data.view(-1)
    entries[-1] = entries[-1].nextafter(torch.tensor(torch.inf, dtype=dtype))
    assert own[number]._version == writes
    assert WeightsVersion.of(own) != before


def permute_rows(weight: Tensor) -> None:
    weight.copy_(weight.flip(0))


def write_and_restore(weight: Tensor) -> None:
    weight.mul_(2).div_(2)


def replace_data(weight: Tensor) -> None:
    weight.data = weight.clone()


@pytest.mark.parametrize("write", [permute_rows, write_and_restore, replace_data])
def test_counted_writes_and_new_storage_change_the_version(write: Callable[[Tensor], None]):
    own = weights()
    before = WeightsVersion.of(own)
    write(own[0])
    assert WeightsVersion.of(own) != before


def test_transposed_weights_have_a_version():
    own = [weights()[0].mT]
    assert WeightsVersion.of(own) == WeightsVersion.of(own)
