"""The ranks of this process: those that a launcher started, or a single one."""

import atexit
import os
from functools import cache

from grupo.distributed.base import SINGLE_RANK, Ranks


@cache
def launched_ranks() -> Ranks:
    """The ranks that torchrun or `--ranks` started, joined at the first call; or a single one.

    Raises:
        ConfigError: The variables of the launcher are incomplete, or the machine has too few GPUs.
    """
    if number_of_ranks() == 1:
        return SINGLE_RANK
    from grupo.distributed.torch_ranks import TorchRanks  # imports torch

    ranks = TorchRanks()
    # the interpreter aborts if it ends while a thread of the ranks is in torch's code
    atexit.register(ranks.close)
    return ranks


def number_of_ranks() -> int:
    """The number of ranks that a launcher started, which need not have joined each other."""
    text = os.environ.get("WORLD_SIZE", "1")
    return int(text) if text.isdecimal() else 0


def is_rank_0() -> bool:
    """Whether this process is the first of its ranks, which prints and writes for all."""
    return os.environ.get("RANK", "0") == "0"
