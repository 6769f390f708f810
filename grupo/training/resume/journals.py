"""The journals of a run: files that each step appends lines to."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from grupo.storage.checkpoint import Checkpoint
from grupo.storage.fault_injection import kill_point
from grupo.storage.journal import DamagedJournal, Journal, JournalState
from grupo.storage.line_checksums import LineChecksums
from grupo.storage.manifest import InvalidCheckpoint
from grupo.util.run_files import JOURNAL_FILES

JOURNAL_CHECKSUMS = "journal_checksums"  # file of a checkpoint: `LineChecksums` of each journal
EMPTY_JOURNALS = dict.fromkeys(JOURNAL_FILES, JournalState())


class RunJournals:
    """The journals in the folder of a run.

    The journal `metrics` has one line for each step, and `rollouts` has one line for each rollout.
    `responses` has one line, with the responses, for each rollout of the first
    `Recipe.logged_groups` groups of a step.

    Args:
        folder: The folder of the run.
    """

    def __init__(self, folder: Path) -> None:
        self.by_name = {name: Journal(folder / file) for name, file in JOURNAL_FILES.items()}

    @property
    def metrics(self) -> Journal:
        """The journal of metrics."""
        return self.by_name["metrics"]

    def append(
        self, metrics: Mapping[str, Any], rollouts: Sequence[Any], responses: Sequence[Any]
    ) -> None:
        """Append the records of a step. The line of metrics is last and completes the step."""
        self.by_name["responses"].append(*responses)
        self.by_name["rollouts"].append(*rollouts)
        kill_point("step/logging")
        self.metrics.append(metrics)

    def fsync(self) -> None:
        """Wait until all lines are on the disk."""
        for journal in self.by_name.values():
            journal.fsync()

    def lengths_and_checksums(self, steps_done: int) -> tuple[dict[str, int], dict[str, Tensor]]:
        """Return the length in bytes and the line checksums of each journal, as two mappings.

        Args:
            steps_done: Number of steps of the run that are done.
        """
        states = {name: journal.state(steps_done) for name, journal in self.by_name.items()}
        lengths = {name: state.length for name, state in states.items()}
        return lengths, {name: state.checksums.to_tensor() for name, state in states.items()}

    def verify(self, states: Mapping[str, JournalState]) -> None:
        """Raise `InvalidCheckpoint` if a line from before a checkpoint is damaged or lost.

        Args:
            states: The states of the journals in the checkpoint.
        """
        for name, state in states.items():
            try:
                self.by_name[name].verify(state)
            except DamagedJournal as problem:
                raise InvalidCheckpoint(str(problem)) from problem

    def truncate(self, states: Mapping[str, JournalState]) -> None:
        """Remove the lines that were written after a checkpoint.

        Args:
            states: The states of the journals in the checkpoint.
        """
        for name, state in states.items():
            self.by_name[name].truncate(state)
            kill_point(f"resume/cut/{name}")


def journal_states(checkpoint: Checkpoint) -> dict[str, JournalState]:
    """Return the state of each journal in a checkpoint, by the name of the journal."""
    lengths = checkpoint.data["lengths"]
    checksums = checkpoint.tensors[JOURNAL_CHECKSUMS]
    return {
        name: JournalState(
            checkpoint.step, lengths[name], LineChecksums.from_tensor(checksums[name])
        )
        for name in JOURNAL_FILES
    }
