"""The replay buffer of a run: a bounded number of stored rollouts of earlier steps, over all tasks.

Twenty bytes of each rollout are in memory: its priority, its step, and its place in the segment of
this step. The rollouts are in the segments (`grupo.storage.segments`), which are files of the run
folder. A checkpoint holds the numbers in memory and the checksums of the segments.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor

from grupo.algo.replay_rules import BufferNumbers
from grupo.core.types import Rollout
from grupo.storage import rollout_json
from grupo.storage.safetensors import StoredTensors
from grupo.storage.segments import SegmentFiles, Segments, SegmentsInMemory, from_line, to_line

REPLAY_BUFFER = "replay_buffer"  # tensors of a checkpoint
WRITTEN = "written"  # one of them: step, length and checksum of each segment (S, 3)
Rows = tuple[tuple[float, ...], ...]  # a number for each column of each row of a rollout


@dataclass(frozen=True)
class StoredRollout:
    """A rollout with the advantages that it was given.

    Args:
        task_key: Key of its task.
        task_source: Source of its task.
        rollout: The rollout.
        old_logp: Log-probabilities that its ratios are taken against, by row and column.
        advantage: Its advantages, by row and column.
    """

    task_key: str
    task_source: str
    rollout: Rollout
    old_logp: Rows
    advantage: Rows

    def to_data(self) -> dict[str, Any]:
        """The rollout as JSON data."""
        return {**vars(self), "rollout": rollout_json.to_data(self.rollout)}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "StoredRollout":
        """The rollout that `to_data` returned."""
        rows = {name: tuple(map(tuple, data[name])) for name in ("old_logp", "advantage")}
        return cls(**{**data, **rows, "rollout": rollout_json.from_data(data["rollout"])})


@dataclass
class ReplayBuffer:
    """The stored rollouts of earlier steps, oldest first; the oldest leave when it is full.

    Args:
        capacity: Largest number of rollouts; 0 keeps none.
        segments: Where the rollouts are.
        priority: Mean |advantage| of each rollout (K,), float64.
        step: The training step that generated each rollout (K,), int32.
        offset: First byte of each rollout in the segment of its step (K,), int64.
        written: Length and checksum of each segment, by step.
    """

    capacity: int = 0
    segments: Segments = field(default_factory=SegmentsInMemory)
    priority: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.float64))
    step: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int32))
    offset: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int64))
    written: dict[int, tuple[int, int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.priority)

    @property
    def numbers(self) -> BufferNumbers:
        """The numbers that a rule of replay reads."""
        return BufferNumbers(self.priority, self.step)

    def read(self, position: int) -> StoredRollout:
        """The rollout at a position."""
        line = self.segments.read(int(self.step[position]), int(self.offset[position]))
        return StoredRollout.from_data(from_line(line, self.segments))

    def lines(self, rollouts: Sequence[StoredRollout]) -> list[bytes]:
        """The lines of rollouts for `append`."""
        return [to_line(rollout.to_data(), self.segments) for rollout in rollouts]

    def append(
        self, step: int, lines: Sequence[bytes], priority: Tensor, *, writes: bool = True
    ) -> None:
        """Add the rollouts of a step, in the place of the oldest ones if the replay buffer is full.

        Args:
            step: Number of the step, from 0.
            lines: The rollouts, as `lines` returned them.
            priority: Mean |advantage| of each rollout.
            writes: Whether this process writes; of several ranks only the first one does.
        """
        if not lines:
            return
        content = b"".join(lines)
        if writes:
            self.segments.write(step, content)
        lengths = torch.tensor([len(line) for line in lines])
        new = (priority, torch.full_like(lengths, step), lengths.cumsum(0) - lengths)
        self.priority, self.step, self.offset = (
            torch.cat([old, added.to(old.dtype)])[-self.capacity :].clone()
            for old, added in zip((self.priority, self.step, self.offset), new, strict=True)
        )
        self.written[step] = (len(content), zlib.crc32(content))
        first = int(self.step[0])
        self.written = {at: value for at, value in self.written.items() if at >= first}
        if isinstance(self.segments, SegmentsInMemory):
            self.segments.keep_only(self.written)

    def tensors(self) -> dict[str, Tensor]:
        """The numbers as tensors for a checkpoint, none without a capacity."""
        if not self.capacity:
            return {}
        rows = [(step, *numbers) for step, numbers in self.written.items()]
        return {
            "priority": self.priority,
            "step": self.step,
            "offset": self.offset,
            WRITTEN: torch.tensor(rows, dtype=torch.int64).reshape(-1, 3),
        }

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what `tensors` returned."""
        if self.capacity:
            self.priority, self.step = tensors["priority"].clone(), tensors["step"].clone()
            self.offset = tensors["offset"].clone()
            self.written = {step: (size, crc) for step, size, crc in tensors[WRITTEN].tolist()}


def verify_segments(run: Path, tensors: Mapping[str, Tensor]) -> None:
    """Raise `InvalidCheckpoint` if a segment that a checkpoint names is damaged or missing.

    Args:
        run: The folder of the run.
        tensors: The tensors of the replay buffer in the checkpoint; empty if it has none.
    """
    files = SegmentFiles(run)
    for row in tensors[WRITTEN].tolist() if tensors else ():
        files.verify(*row)


def remove_unnamed_segments(run: Path, checkpoints: Iterable[Path]) -> None:
    """Remove the segments that no checkpoint names; none, if a checkpoint cannot be read.

    Args:
        run: The folder of the run.
        checkpoints: The folders of its checkpoints.
    """
    named: set[int] = set()
    for folder in checkpoints:
        file = folder / f"{REPLAY_BUFFER}.safetensors"
        try:
            named.update(StoredTensors(file)[WRITTEN][:, 0].tolist())
        except (OSError, KeyError, SafetensorError):
            return
    SegmentFiles(run).keep_only(named)
