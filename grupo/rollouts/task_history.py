"""What happened to each task before, of a million tasks as of ten."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from struct import Struct, pack, unpack

import torch
from torch import Tensor

from grupo.core.batch import TaskHistory
from grupo.storage.append_log import AppendLog

_GROUP_HEADER = Struct("<qIII")  # the task's group before, or -1; step; rewards; which parts
_Group = tuple[int, tuple[float, ...], dict[str, tuple[float, ...]]]  # step, rewards, parts


@dataclass(eq=False)
class TaskHistoryStore(Mapping[str, TaskHistory]):
    """The past of each task by its key, in the order in which they first came.

    In memory is where a task's newest group lies; the groups lie in a log, each with the place of
    the one before it. What was written never changes: a copy reads the same log, as far as it went
    when the copy was made.
    """

    log: AppendLog = field(default_factory=AppendLog)
    newest_offsets: dict[str, int] = field(default_factory=dict)
    term_names: list[tuple[str, ...]] = field(default_factory=list)  # the parts that groups have
    end: float = inf  # of the log, as far as it is read

    def __getitem__(self, key: str) -> TaskHistory:
        groups = [*self._groups(key)][::-1]
        if not groups:
            raise KeyError(key)
        steps, rewards, parts = zip(*groups, strict=True)
        names = dict.fromkeys(name for some in parts for name in some)
        told = {name: tuple(some[name] for some in parts if name in some) for name in names}
        return TaskHistory(steps, rewards, told)

    def __iter__(self) -> Iterator[str]:
        return (key for key in [*self.newest_offsets] if any(self._groups(key)))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def copy(self) -> "TaskHistoryStore":
        """What is known until now, to be read while more is appended here."""
        return TaskHistoryStore(
            self.log, self.newest_offsets, self.term_names, min(self.end, len(self.log))
        )

    def append(
        self,
        key: str,
        step: int,
        rewards: Sequence[float],
        reward_terms: Mapping[str, Sequence[float]],
    ) -> None:
        """Note a group's step, its rewards, and parts of them, as many of each."""
        names = tuple(sorted(reward_terms))
        if names not in self.term_names:
            self.term_names.append(names)
        numbers = [*rewards, *(x for name in names for x in reward_terms[name])]
        before = self.newest_offsets.get(key, -1)
        head = _GROUP_HEADER.pack(before, step, len(rewards), self.term_names.index(names))
        self.newest_offsets[key] = self.log.append(head + pack(f"<{len(numbers)}d", *numbers))

    def tensors(self) -> dict[str, Tensor]:
        """All of it, as a checkpoint holds it."""
        keys = bytearray(json.dumps([[*self.newest_offsets], self.term_names]).encode())
        log, places = (
            self.log.contents(),
            torch.tensor([*self.newest_offsets.values()], dtype=torch.long),
        )
        return {"log": _to_uint8(log), "newest": places, "keys": _to_uint8(keys)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> "TaskHistoryStore":
        """What `tensors` wrote."""
        keys, named = json.loads(tensors["keys"].numpy().tobytes())
        newest = dict(zip(keys, tensors["newest"].tolist(), strict=True))
        return cls(AppendLog(tensors["log"].numpy().data), newest, [*map(tuple, named)])

    def _groups(self, key: str) -> Iterator[_Group]:
        """The task's groups, newest first."""
        place = self.newest_offsets.get(key, -1)
        while place >= 0:
            head = self.log.read(place, _GROUP_HEADER.size)
            before, step, count, names = _GROUP_HEADER.unpack(head)
            if place < self.end:
                yield (step, *self._read_values(place, count, self.term_names[names]))
            place = before

    def _read_values(
        self, offset: int, count: int, names: Sequence[str]
    ) -> tuple[tuple[float, ...], dict[str, tuple[float, ...]]]:
        size = count * (1 + len(names))
        numbers = unpack(f"<{size}d", self.log.read(offset + _GROUP_HEADER.size, 8 * size))
        each = [numbers[i : i + count] for i in range(0, size, count)]
        return each[0], dict(zip(names, each[1:], strict=True))


def _to_uint8(content: bytearray | memoryview) -> Tensor:
    if not len(content):
        return torch.zeros(0, dtype=torch.uint8)
    return torch.frombuffer(content, dtype=torch.uint8)
