"""Checks that all ranks have the same program, recipe and weights."""

from collections.abc import Mapping

import torch
from torch import Tensor

from grupo.distributed.base import Ranks
from grupo.distributed.exchange import exchange_json
from grupo.distributed.phase import Phase
from grupo.util.errors import ConfigError
from grupo.util.exit_codes import CommandError


class RanksDifferError(CommandError):
    """The weights of ranks differ, which all had the same updates."""


def check_same_values(ranks: Ranks, values: Mapping[str, str]) -> None:
    """Raise `ConfigError` if a rank has another value, such as another version of a library."""
    by_rank = exchange_json(ranks, dict(values), Phase.VERSIONS_COMPARED)
    for rank, others in enumerate(by_rank):
        for name, value in by_rank[0].items():
            if others[name] != value:
                raise ConfigError(
                    f"ranks: rank {rank} has {name} {others[name]}, and rank 0 has {value}."
                    " Allowed: the same on all ranks."
                )


def check_same_weights(ranks: Ranks, weights: Mapping[str, Tensor]) -> None:
    """Raise `RanksDifferError` if the bits of a rank's weights differ from those of rank 0."""
    if ranks.size == 1:
        return
    sums = {name: _sum_of_bits(weight) for name, weight in weights.items()}
    by_rank = exchange_json(ranks, sums, Phase.WEIGHTS_COMPARED)
    for rank, others in enumerate(by_rank):
        different = [name for name in sums if others[name] != by_rank[0][name]]
        if different:
            raise RanksDifferError(
                f"The weights of rank {rank} differ from those of rank 0 in {different[0]!r}"
                f" ({len(different)} of {len(sums)} tensors). The checkpoint is not written: resume"
                " from the one before, on ranks of the same kind of machine."
            )


def _sum_of_bits(weight: Tensor) -> int:
    """The sum of the tensor's bytes as signed numbers of one to eight bytes."""
    integer = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[weight.element_size()]
    return int(weight.detach().contiguous().view(integer).sum(dtype=torch.int64))
