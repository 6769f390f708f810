"""The processes that train together, each with a rank; a process of its own is rank 0 of 1."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from grupo.distributed.phase import Phase

if TYPE_CHECKING:
    from torch import Tensor

# collectives of the thread that generates ahead must not mix with those of the thread that updates
Channel = Literal["update", "generate"]


class Ranks(Protocol):
    """The processes that train together.

    Every rank calls the same methods in the same order, for each channel.

    Args:
        rank: The rank of this process, from 0.
        size: The number of processes.
    """

    rank: int
    size: int

    def begin_step(self, number: int) -> None:
        """Note the number of the step that begins, from 1, for reports about the ranks."""
        ...

    def start_rank_report(self, file: Path) -> None:
        """Write where each rank is to a file, each second from now on; a single rank deletes it."""
        ...

    def exchange(self, data: bytes, phase: Phase, channel: Channel = "update") -> list[bytes]:
        """The data of all ranks, by rank.

        Args:
            data: The data of this rank.
            phase: What this rank has done, for messages about ranks that have not.
            channel: The thread that calls.
        """
        ...

    def sum(self, tensors: "Sequence[Tensor]", phase: Phase) -> None:
        """Replace each tensor by its sum over the ranks, with the same bits on every rank."""
        ...


class SingleRank:
    """The only process; its exchanges return its own data at once."""

    rank = 0
    size = 1

    def begin_step(self, number: int) -> None:
        pass

    def start_rank_report(self, file: Path) -> None:
        file.unlink(missing_ok=True)  # the report of several ranks that trained this run before

    def exchange(self, data: bytes, phase: Phase, channel: Channel = "update") -> list[bytes]:
        return [data]

    def sum(self, tensors: "Sequence[Tensor]", phase: Phase) -> None:
        pass


SINGLE_RANK = SingleRank()
