"""Ranks that torchrun started: collectives of `torch.distributed`, with named limits of waiting."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from grupo.core.errors import ConfigError
from grupo.distributed.base import Channel
from grupo.distributed.presence import Presence, RankLostError

VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
PATIENCE = 1800.0  # seconds to wait for a rank that is alive: a long answer, a slow judge
LOST_AFTER = 30.0  # seconds without a heartbeat after which a rank counts as lost
JOIN_LIMIT = timedelta(seconds=300)  # for all ranks to start


class TorchRanks:
    """The processes of a process group.

    Args:
        environment: The variables that torchrun sets. `GRUPO_PATIENCE` may hold the seconds to wait
            for a rank that is alive, and `GRUPO_LOST_AFTER` those without a heartbeat after which
            a rank counts as lost.

    Raises:
        ConfigError: The variables are incomplete.
    """

    def __init__(
        self,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        if missing := [name for name in VARIABLES if not environment.get(name)]:
            raise ConfigError(
                f"{missing[0]}: not set, but WORLD_SIZE is {environment.get('WORLD_SIZE')!r}."
                f" Allowed: all of {', '.join(VARIABLES)}, as torchrun sets them, or none."
            )
        self.rank = int(environment["RANK"])
        self.size = int(environment["WORLD_SIZE"])
        self.local_rank = int(environment["LOCAL_RANK"])
        patience = float(environment.get("GRUPO_PATIENCE", PATIENCE))
        lost_after = float(environment.get("GRUPO_LOST_AFTER", LOST_AFTER))
        limit = timedelta(seconds=patience + lost_after)
        dist.init_process_group("gloo", timeout=JOIN_LIMIT)
        self.groups: dict[Channel, dist.ProcessGroup] = {
            "update": dist.new_group(backend="gloo", timeout=limit),
            "generate": dist.new_group(backend="gloo", timeout=limit),
        }
        self.device_group = self.groups["update"]
        if torch.cuda.is_available():
            self._choose_gpu()
            self.device_group = dist.new_group(backend="nccl", timeout=limit)
        self.presence = Presence(
            _connector(environment), self.rank, self.size, patience, lost_after
        )

    def exchange(self, data: bytes, phase: str, channel: Channel = "update") -> list[bytes]:
        group = self.groups[channel]
        with self._collective(phase, channel):
            own = torch.tensor([len(data)])
            sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(self.size)]
            dist.all_gather(sizes, own, group=group)
            lengths = [int(size) for size in sizes]
            padded = torch.frombuffer(bytearray(data.ljust(max(*lengths, 1))), dtype=torch.uint8)
            parts = [torch.empty_like(padded) for _ in range(self.size)]
            dist.all_gather(parts, padded, group=group)
        return [
            part[:length].numpy().tobytes() for part, length in zip(parts, lengths, strict=True)
        ]

    def sum(self, tensors: Sequence[Tensor], phase: str) -> None:
        with self._collective(phase, "update"):
            for tensor in tensors:
                on_device = tensor.device.type == "cuda"
                group = self.device_group if on_device else self.groups["update"]
                dist.all_reduce(tensor, group=group)

    def close(self) -> None:
        """Leave the process group."""
        self.presence.close()
        dist.destroy_process_group()

    def _choose_gpu(self) -> None:
        if self.local_rank >= torch.cuda.device_count():
            raise ConfigError(
                f"device: rank {self.local_rank} of this machine has no GPU. Allowed: at most"
                f" {torch.cuda.device_count()} ranks, one for each GPU."
            )
        torch.cuda.set_device(self.local_rank)

    @contextmanager
    def _collective(self, phase: str, channel: Channel) -> Iterator[None]:
        """Wait for all ranks first: a missing one is named, and the collective does not hang."""
        self.presence.meet(phase, channel)
        try:
            yield
        except RuntimeError as error:
            raise RankLostError(self.presence.describe(phase)) from error


def _connector(environment: Mapping[str, str]) -> Callable[[], dist.Store]:
    """Opens connections to the store of the process group, below a prefix of this start."""
    address, port = environment["MASTER_ADDR"], int(environment["MASTER_PORT"])
    attempt = environment.get("TORCHELASTIC_RESTART_COUNT", "0")

    def connect() -> dist.Store:
        store = dist.TCPStore(address, port, is_master=False, timeout=JOIN_LIMIT)
        return dist.PrefixStore(f"grupo/{attempt}", store)

    return connect
