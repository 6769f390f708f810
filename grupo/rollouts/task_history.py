"""What happened to each task before, of a million tasks as of ten."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from struct import Struct, pack, unpack

import torch
from torch import Tensor

from grupo.core.batch import Past
from grupo.storage.append_log import Log

_HEAD = Struct("<qIII")  # the task's group before, or -1; step; rewards; which parts
_Group = tuple[int, tuple[float, ...], dict[str, tuple[float, ...]]]  # step, rewards, parts


@dataclass(eq=False)
class Pasts(Mapping[str, Past]):
    """The past of each task by its key, in the order in which they first came.

    In memory is where a task's newest group lies; the groups lie in a log, each with the place of
    the one before it. What was written never changes: a copy reads the same log, as far as it went
    when the copy was made.
    """

    log: Log = field(default_factory=Log)
    newest: dict[str, int] = field(default_factory=dict)
    named: list[tuple[str, ...]] = field(default_factory=list)  # the parts that groups have
    end: float = inf  # of the log, as far as it is read

    def __getitem__(self, key: str) -> Past:
        groups = [*self._groups(key)][::-1]
        if not groups:
            raise KeyError(key)
        steps, rewards, parts = zip(*groups, strict=True)
        names = dict.fromkeys(name for some in parts for name in some)
        told = {name: tuple(some[name] for some in parts if name in some) for name in names}
        return Past(steps, rewards, told)

    def __iter__(self) -> Iterator[str]:
        return (key for key in [*self.newest] if any(self._groups(key)))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def copy(self) -> "Pasts":
        """What is known until now, to be read while more is appended here."""
        return Pasts(self.log, self.newest, self.named, min(self.end, len(self.log)))

    def append(
        self, key: str, step: int, rewards: Sequence[float], parts: Mapping[str, Sequence[float]]
    ) -> None:
        """Note a group's step, its rewards, and parts of them, as many of each."""
        names = tuple(sorted(parts))
        if names not in self.named:
            self.named.append(names)
        numbers = [*rewards, *(x for name in names for x in parts[name])]
        before = self.newest.get(key, -1)
        head = _HEAD.pack(before, step, len(rewards), self.named.index(names))
        self.newest[key] = self.log.append(head + pack(f"<{len(numbers)}d", *numbers))

    def tensors(self) -> dict[str, Tensor]:
        """All of it, as a checkpoint holds it."""
        keys = bytearray(json.dumps([[*self.newest], self.named]).encode())
        log, places = self.log.whole(), torch.tensor([*self.newest.values()], dtype=torch.long)
        return {"log": _bytes(log), "newest": places, "keys": _bytes(keys)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> "Pasts":
        """What `tensors` wrote."""
        keys, named = json.loads(tensors["keys"].numpy().tobytes())
        newest = dict(zip(keys, tensors["newest"].tolist(), strict=True))
        return cls(Log(tensors["log"].numpy().data), newest, [*map(tuple, named)])

    def _groups(self, key: str) -> Iterator[_Group]:
        """The task's groups, newest first."""
        place = self.newest.get(key, -1)
        while place >= 0:
            head = self.log.read(place, _HEAD.size)
            before, step, count, names = _HEAD.unpack(head)
            if place < self.end:
                yield (step, *self._numbers(place, count, self.named[names]))
            place = before

    def _numbers(
        self, place: int, count: int, names: Sequence[str]
    ) -> tuple[tuple[float, ...], dict[str, tuple[float, ...]]]:
        size = count * (1 + len(names))
        numbers = unpack(f"<{size}d", self.log.read(place + _HEAD.size, 8 * size))
        each = [numbers[i : i + count] for i in range(0, size, count)]
        return each[0], dict(zip(names, each[1:], strict=True))


def _bytes(content: bytearray | memoryview) -> Tensor:
    if not len(content):
        return torch.zeros(0, dtype=torch.uint8)
    return torch.frombuffer(content, dtype=torch.uint8)
