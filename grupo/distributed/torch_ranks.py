"""Ranks that torchrun started: collectives of `torch.distributed`, with named limits of waiting."""

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import PrefixStore, ProcessGroup, Store, TCPStore
from torch.distributed.device_mesh import DeviceMesh

from grupo.distributed.base import Channel
from grupo.distributed.phase import Phase
from grupo.distributed.presence import Presence, RankLostError
from grupo.util.errors import ConfigError
from grupo.util.terminal_text import printable_message

VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
DEFAULTS = {
    "GRUPO_PATIENCE": "1800",  # seconds to wait for a rank that is alive: a slow judge
    "GRUPO_LOST_AFTER": "30",  # seconds without a heartbeat after which a rank counts as lost
}
JOIN_LIMIT = timedelta(seconds=300)  # for all ranks to start


class TorchRanks:
    """The processes of a process group.

    Args:
        environment: The variables that torchrun sets. `GRUPO_PATIENCE` may hold the seconds to wait
            for a rank that is alive, and `GRUPO_LOST_AFTER` those without a heartbeat after which
            a rank counts as lost.

    Raises:
        ConfigError: A variable is missing or not as allowed, the port is taken, or this machine
            has fewer GPUs than ranks.
        RankLostError: Not all ranks started in time.
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
        self.size = _number(environment, "WORLD_SIZE", 1)
        self.rank = _number(environment, "RANK", 0, self.size - 1)
        self.local_rank = _number(environment, "LOCAL_RANK", 0, self.size - 1)
        patience = _number(environment, "GRUPO_PATIENCE", 1)
        lost_after = _number(environment, "GRUPO_LOST_AFTER", 1)
        limit = timedelta(seconds=patience + lost_after)
        _join(environment, self.rank, self.size)
        self.groups: dict[Channel, ProcessGroup] = {
            "update": _new_group("gloo", limit),
            "generate": _new_group("gloo", limit),
        }
        self.device_group = self.groups["update"]
        if torch.cuda.is_available():
            self._choose_gpu()
            self.device_group = _new_group("nccl", limit)
        self.presence = Presence(
            partial(_store, environment), self.rank, self.size, patience, lost_after
        )

    def begin_step(self, number: int) -> None:
        self.presence.step = number

    def start_rank_report(self, file: Path) -> None:
        if self.rank == 0:
            self.presence.start_rank_report(file)

    def exchange(self, data: bytes, phase: Phase, channel: Channel = "update") -> list[bytes]:
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

    def sum(self, tensors: Sequence[Tensor], phase: Phase) -> None:
        with self._collective(phase, "update"):
            for tensor in tensors:
                on_device = tensor.device.type == "cuda"
                group = self.device_group if on_device else self.groups["update"]
                dist.all_reduce(tensor, group=group)

    def mesh(self, device_type: str) -> DeviceMesh:
        """The ranks as torch needs them to divide weights on devices of a type, "cpu" or "cuda"."""
        group = self.device_group if device_type == "cuda" else self.groups["update"]
        return DeviceMesh.from_group(group, device_type)

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
    def _collective(self, phase: Phase, channel: Channel) -> Generator[None]:
        """Wait for all ranks first: a missing one is named, and the collective does not hang."""
        self.presence.wait_at_barrier(phase, channel)
        try:
            yield
        except RuntimeError as error:
            raise RankLostError(self.presence.describe(phase)) from error


def _number(
    environment: Mapping[str, str], name: str, smallest: int, largest: int | None = None
) -> int:
    """The whole number in a variable, or its default."""
    text = environment.get(name) or DEFAULTS[name]
    if text.isdecimal() and smallest <= int(text) and (largest is None or int(text) <= largest):
        return int(text)
    allowed = f"{smallest} or more" if largest is None else f"{smallest} to {largest}"
    raise ConfigError(f"{name}: {text!r}. Allowed: a whole number, {allowed}.")


def _join(environment: Mapping[str, str], rank: int, size: int) -> None:
    """Start the process group, which waits until all ranks have started."""
    try:
        store = _store(environment, is_master=rank == 0 and not _has_launcher_store(environment))
        dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=JOIN_LIMIT)
    except dist.DistNetworkError as error:
        if "EADDRINUSE" in str(error):
            raise ConfigError(
                f"MASTER_PORT: {environment['MASTER_PORT']}, which another program uses. Allowed:"
                " a free port, the same on all ranks."
            ) from error
        raise RankLostError(_not_started(environment, error)) from error
    except dist.DistStoreError as error:
        raise RankLostError(_not_started(environment, error)) from error


def _has_launcher_store(environment: Mapping[str, str]) -> bool:
    """Whether the store belongs to the launcher; otherwise to rank 0."""
    return environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


def _store(environment: Mapping[str, str], *, is_master: bool = False) -> Store:
    """A connection to the store of the ranks.

    Its keys are those of this start: torchrun keeps the store when it starts the ranks again.
    """
    address, port = environment["MASTER_ADDR"], int(environment["MASTER_PORT"])
    attempt = environment.get("TORCHELASTIC_RESTART_COUNT", "0")
    store = TCPStore(address, port, is_master=is_master, timeout=JOIN_LIMIT, wait_for_workers=False)
    return PrefixStore(f"grupo/{attempt}", store)


def _not_started(environment: Mapping[str, str], error: Exception) -> str:
    address = f"{environment['MASTER_ADDR']}:{environment['MASTER_PORT']}"
    return (
        f"Not all {environment['WORLD_SIZE']} ranks met at {address} within"
        f" {JOIN_LIMIT.total_seconds():.0f} s: {printable_message(str(error).splitlines()[0])}"
    )


def _new_group(backend: str, limit: timedelta) -> ProcessGroup:
    group = dist.new_group(backend=backend, timeout=limit)
    assert isinstance(group, ProcessGroup)  # all ranks are members
    return group
