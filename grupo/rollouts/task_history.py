"""A store of the earlier rewards of each task, for a million tasks as well as for ten."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from struct import Struct, pack, unpack

import torch
from torch import Tensor

from grupo.core.batch import TaskHistory
from grupo.storage.append_log import AppendLog

# offset of the task's previous group or -1, step, number of rewards, index of the term names
_GROUP_HEADER = Struct("<qIII")
_Group = tuple[int, tuple[float, ...], dict[str, tuple[float, ...]]]  # step, rewards, reward terms


@dataclass(eq=False)
class TaskHistoryStore(Mapping[str, TaskHistory]):
    """The history of each task by its key, in the order in which tasks were first drawn.

    Groups lie in a log, each with the offset of the task's previous group; memory holds only the
    offset of each task's newest group. The log is append-only: a copy reads the same log, up to
    its length at the time of the copy.

    Args:
        log: The log of groups.
        newest_offsets: Offset of the newest group of each task.
        term_names: The sets of reward terms that occur; groups refer to them by index.
        end: Offset in the log behind which groups are ignored.
    """

    log: AppendLog = field(default_factory=AppendLog)
    newest_offsets: dict[str, int] = field(default_factory=dict)
    term_names: list[tuple[str, ...]] = field(default_factory=list)
    end: float = inf

    def __getitem__(self, key: str) -> TaskHistory:
        groups = [*self._groups(key)][::-1]
        if not groups:
            raise KeyError(key)
        steps, rewards, terms = zip(*groups, strict=True)
        names = dict.fromkeys(name for values in terms for name in values)
        reward_terms = {
            name: tuple(values[name] for values in terms if name in values) for name in names
        }
        return TaskHistory(steps, rewards, reward_terms)

    def __iter__(self) -> Iterator[str]:
        return (key for key in [*self.newest_offsets] if any(self._groups(key)))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def copy(self) -> "TaskHistoryStore":
        """A snapshot, which does not change when groups are appended to this store."""
        end = min(self.end, len(self.log))
        return TaskHistoryStore(self.log, self.newest_offsets, self.term_names, end)

    def append(
        self,
        key: str,
        step: int,
        rewards: Sequence[float],
        reward_terms: Mapping[str, Sequence[float]],
    ) -> None:
        """Append a group.

        Args:
            key: The task's key.
            step: Number of the step, from 0.
            rewards: Reward of each rollout.
            reward_terms: Reward terms by name, one value per rollout.
        """
        names = tuple(sorted(reward_terms))
        if names not in self.term_names:
            self.term_names.append(names)
        values = [*rewards, *(x for name in names for x in reward_terms[name])]
        previous = self.newest_offsets.get(key, -1)
        header = _GROUP_HEADER.pack(previous, step, len(rewards), self.term_names.index(names))
        self.newest_offsets[key] = self.log.append(header + pack(f"<{len(values)}d", *values))

    def tensors(self) -> dict[str, Tensor]:
        """The store as tensors for a checkpoint."""
        keys = bytearray(json.dumps([[*self.newest_offsets], self.term_names]).encode())
        log = self.log.contents()
        offsets = torch.tensor([*self.newest_offsets.values()], dtype=torch.long)
        return {"log": _to_uint8(log), "newest": offsets, "keys": _to_uint8(keys)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> "TaskHistoryStore":
        """The store that `tensors` returned."""
        keys, term_names = json.loads(tensors["keys"].numpy().tobytes())
        newest_offsets = dict(zip(keys, tensors["newest"].tolist(), strict=True))
        log = AppendLog(tensors["log"].numpy().data)
        return cls(log, newest_offsets, [*map(tuple, term_names)])

    def _groups(self, key: str) -> Iterator[_Group]:
        """The task's groups, newest first."""
        offset = self.newest_offsets.get(key, -1)
        while offset >= 0:
            header = self.log.read(offset, _GROUP_HEADER.size)
            previous, step, count, names = _GROUP_HEADER.unpack(header)
            if offset < self.end:
                yield (step, *self._read_values(offset, count, self.term_names[names]))
            offset = previous

    def _read_values(
        self, offset: int, count: int, names: Sequence[str]
    ) -> tuple[tuple[float, ...], dict[str, tuple[float, ...]]]:
        size = count * (1 + len(names))
        values = unpack(f"<{size}d", self.log.read(offset + _GROUP_HEADER.size, 8 * size))
        rewards, *terms = [values[i : i + count] for i in range(0, size, count)]
        return rewards, dict(zip(names, terms, strict=True))


def _to_uint8(content: bytearray | memoryview) -> Tensor:
    if not len(content):
        return torch.zeros(0, dtype=torch.uint8)
    return torch.frombuffer(content, dtype=torch.uint8)
