"""Ranks that are threads of one process, for tests of what several processes compute together."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any, TypeVar

import torch
from torch import Tensor

from grupo.distributed.base import Channel, Ranks
from grupo.distributed.phase import Phase

Result = TypeVar("Result")

TIME_LIMIT = 60.0  # seconds that a rank waits for the others


class ThreadRanks:
    """One of several ranks, each in a thread.

    Args:
        rank: The rank of this thread, from 0.
        shared: What the ranks exchange, one entry per rank.
        barrier: Where the ranks meet.
    """

    def __init__(self, rank: int, shared: list[Any], barrier: Barrier) -> None:
        self.rank = rank
        self.size = barrier.parties
        self.shared = shared
        self.barrier = barrier

    def begin_step(self, number: int) -> None:
        pass

    def start_rank_report(self, file: Path) -> None:
        pass

    def exchange(self, data: bytes, phase: Phase, channel: Channel = "update") -> list[bytes]:
        return self._all(data)

    def sum(self, tensors: Sequence[Tensor], phase: Phase) -> None:
        for tensor in tensors:
            tensor.copy_(torch.stack(self._all(tensor.clone())).sum(0))

    def _all(self, value: Result) -> list[Result]:
        self.barrier.wait(TIME_LIMIT)  # all have read the values of the previous call
        self.shared[self.rank] = value
        self.barrier.wait(TIME_LIMIT)
        return list(self.shared)


def run_ranks(num_ranks: int, fn: Callable[[Ranks], Result]) -> list[Result]:
    """The results of a function that each rank calls, by rank.

    Raises:
        BrokenBarrierError: A rank waited longer than `TIME_LIMIT` for the others. If the function
            fails in a rank, its error is raised instead.

    >>> run_ranks(2, lambda ranks: ranks.exchange(str(ranks.rank).encode(), Phase.STEP_ENDED))
    [[b'0', b'1'], [b'0', b'1']]
    """
    shared: list[Any] = [None] * num_ranks
    barrier = Barrier(num_ranks)

    def run(rank: int) -> Result:
        try:
            return fn(ThreadRanks(rank, shared, barrier))
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(num_ranks) as threads:
        futures = [threads.submit(run, rank) for rank in range(num_ranks)]
    # a rank whose function fails breaks the barrier at which the other ranks wait
    errors = [error for future in futures if (error := future.exception())]
    for error in sorted(errors, key=lambda error: isinstance(error, BrokenBarrierError)):
        raise error
    return [future.result() for future in futures]
