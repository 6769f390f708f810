"""The replay buffer of a run: a bounded number of stored rollouts of earlier steps, over all tasks.

A segment holds the rollouts that one training step added (`grupo.storage.segments`). In a run, the
segments are files in the run folder. Memory then holds only twenty bytes for each rollout: its
priority, its step, and the position of its first byte in the segment of that step. A checkpoint
contains these values and the length and checksum of each segment. Without a run folder, the
segments are in memory.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor

from grupo.algo.replay_rules import ReplayCandidates
from grupo.core.types import Rollout
from grupo.storage import rollout_json
from grupo.storage.safetensors import StoredTensors
from grupo.storage.segments import SegmentFiles, Segments, SegmentsInMemory, from_line, to_line

REPLAY_BUFFER = "replay_buffer"  # name of the file, in a checkpoint, with the buffer's tensors
# name, in the file, of the tensor with step, bytes and CRC-32 of each segment
SEGMENT_CHECKSUMS = "written"
# numbers per action, a tuple for each row of the batch that the rollout becomes: a turn that resets
# the context begins a new row
ValuesPerAction = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class StoredRollout:
    """A rollout of an earlier step with its advantages and old log-probabilities.

    Args:
        task_key: Identifier of the rollout's task (`Task.key`).
        task_source: Name of the task family or file that the task comes from (`Task.source`).
        rollout: The rollout.
        old_logp: Old log-probability of each action, the denominator of the ratio.
        advantage: Advantage of each action, from the step that generated the rollout.
    """

    task_key: str
    task_source: str
    rollout: Rollout
    old_logp: ValuesPerAction
    advantage: ValuesPerAction

    def to_data(self) -> dict[str, Any]:
        """The stored rollout as JSON data."""
        return {**vars(self), "rollout": rollout_json.to_data(self.rollout)}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "StoredRollout":
        """Inverse of `to_data`."""
        values: dict[str, Any] = {**data, "rollout": rollout_json.from_data(data["rollout"])}
        for name in ("old_logp", "advantage"):
            values[name] = tuple(map(tuple, data[name]))
        return cls(**values)


@dataclass
class ReplayBuffer:
    """The stored rollouts of earlier steps, oldest first; K is their number.

    A full buffer drops its oldest rollouts to make room for new ones.

    Args:
        capacity: Largest number of stored rollouts; 0 for a method that does not replay rollouts.
        segments: Reads and writes the stored rollouts.
        priority: Mean |advantage| of each stored rollout (K,), float64.
        step: Number of the training step that generated each stored rollout (K,), int32.
        offset: Position of the first byte of each stored rollout in its segment (K,), int64.
        segment_checksums: Length in bytes and CRC-32 of each segment, by the number of its step.
    """

    capacity: int = 0
    segments: Segments = field(default_factory=SegmentsInMemory)
    priority: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.float64))
    step: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int32))
    offset: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int64))
    segment_checksums: dict[int, tuple[int, int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.priority)

    @property
    def priorities_and_steps(self) -> ReplayCandidates:
        """Priority and step of each stored rollout, by which a replay rule chooses rollouts."""
        return ReplayCandidates(self.priority, self.step)

    def read(self, position: int) -> StoredRollout:
        """The stored rollout at a position, from 0 for the oldest."""
        line = self.segments.read(int(self.step[position]), int(self.offset[position]))
        return StoredRollout.from_data(from_line(line, self.segments))

    def to_lines(self, rollouts: Sequence[StoredRollout]) -> list[bytes]:
        """Each rollout as one line of JSON, for `append`; images are stored outside the line."""
        return [to_line(rollout.to_data(), self.segments) for rollout in rollouts]

    def append(
        self, step: int, lines: Sequence[bytes], priority: Tensor, *, is_writer: bool = True
    ) -> None:
        """Add the rollouts of a step, and drop the oldest rollouts beyond the capacity.

        A buffer with the capacity 0 must not get rollouts. All ranks call this.

        Args:
            step: Index of the step, from 0.
            lines: The rollouts, each as one line from `to_lines`.
            priority: Mean |advantage| of each rollout.
            is_writer: Whether this process writes the segment; with several ranks, only rank 0.
        """
        if not lines:
            return
        content = b"".join(lines)
        if is_writer:
            self.segments.write(step, content)
        lengths = torch.tensor([len(line) for line in lines])
        new_values = (priority, torch.full_like(lengths, step), lengths.cumsum(0) - lengths)
        self.priority, self.step, self.offset = (
            torch.cat([old, new.to(old.dtype)])[-self.capacity :].clone()
            for old, new in zip((self.priority, self.step, self.offset), new_values, strict=True)
        )
        self.segment_checksums[step] = (len(content), zlib.crc32(content))
        oldest_step = int(self.step[0])
        self.segment_checksums = {
            segment_step: checksum
            for segment_step, checksum in self.segment_checksums.items()
            if segment_step >= oldest_step
        }
        # files are removed later, because checkpoints still need them
        if isinstance(self.segments, SegmentsInMemory):
            self.segments.keep_only(self.segment_checksums)

    def tensors(self) -> dict[str, Tensor]:
        """The tensors of a checkpoint, by name; no tensors if the capacity is 0."""
        if not self.capacity:
            return {}
        rows = [(step, *checksum) for step, checksum in self.segment_checksums.items()]
        return {
            "priority": self.priority,
            "step": self.step,
            "offset": self.offset,
            SEGMENT_CHECKSUMS: torch.tensor(rows, dtype=torch.int64).reshape(-1, 3),
        }

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the buffer from the tensors of a checkpoint."""
        if self.capacity:
            self.priority, self.step = tensors["priority"].clone(), tensors["step"].clone()
            self.offset = tensors["offset"].clone()
            rows = tensors[SEGMENT_CHECKSUMS].tolist()
            self.segment_checksums = {step: (length, checksum) for step, length, checksum in rows}


def verify_referenced_segments(run: Path, tensors: Mapping[str, Tensor]) -> None:
    """Raise `InvalidCheckpoint` if a segment file that a checkpoint needs is damaged or missing.

    Args:
        run: The folder of the run.
        tensors: The tensors of the replay buffer in the checkpoint; empty if it has none.
    """
    files = SegmentFiles(run)
    for step, length, checksum in tensors[SEGMENT_CHECKSUMS].tolist() if tensors else ():
        files.verify(step, length, checksum)


def remove_unreferenced_segments(run: Path, checkpoints: Iterable[Path]) -> None:
    """Remove the segments that no checkpoint references.

    If one of the checkpoints cannot be read, no segment is removed.

    Args:
        run: The folder of the run.
        checkpoints: The folders of the run's checkpoints.
    """
    referenced_steps: set[int] = set()
    for folder in checkpoints:
        file = folder / f"{REPLAY_BUFFER}.safetensors"
        try:
            referenced_steps.update(StoredTensors(file)[SEGMENT_CHECKSUMS][:, 0].tolist())
        except (OSError, KeyError, SafetensorError):
            return
    SegmentFiles(run).keep_only(referenced_steps)
