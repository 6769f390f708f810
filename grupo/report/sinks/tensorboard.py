"""A run's metrics for TensorBoard, under the names that the journal has."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from grupo.errors import Refused
from grupo.evaluation import Score
from grupo.recipe import Recipe


def to_stderr(line: str) -> None:
    """Say a line beside the program's output."""
    print(line, file=sys.stderr)


class TensorBoard:
    """A watcher that writes every metric to a folder of events.

    Metrics lie at the journal's step, from 0; scores of held-out tasks at the steps done before
    them. A disk that is full or gone is told of once, and then the run goes on without events.
    Raises `Refused` at once where tensorboard is not installed.
    """

    def __init__(self, folder: Path, say: Callable[[str], None] = to_stderr) -> None:
        self.folder, self.say, self.done = folder, say, 0
        self.make, self.writer = _writer_class(), None
        self.broken = False

    def begun(self, recipe: Recipe, step: int) -> None:
        self.done = step
        self._try(self._open)

    def said(self, line: str) -> None:
        pass

    def evaluated(self, when: str, score: Score) -> None:
        shares = score.to_data()
        named = {f"held-out/{name}": shares[name] for name in shares["intervals"]}
        self._try(lambda: self._write(named, self.done))

    def stepped(self, step: int, metrics: Mapping[str, float]) -> None:
        self.done = step + 1
        self._try(lambda: self._write(metrics, step))

    def ended(self) -> None:
        self._try(lambda: self.writer.close())

    def _open(self) -> None:
        # what an interrupted run wrote after this step is hidden: it is done again
        self.writer: Any = self.make(str(self.folder), purge_step=self.done or None)

    def _write(self, values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()

    def _try(self, write: Callable[[], None]) -> None:
        if self.broken:
            return
        try:
            write()
        except Exception as error:  # of a library, its threads and the disk: none may end a run
            self.broken = True
            why = f"{type(error).__name__}: {error}"
            self.say(f"TensorBoard: writing to {self.folder} failed and was given up. {why}")


def _writer_class() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise Refused(
            'tensorboard is not installed. Install it: pip install "grupo[tensorboard]".'
        ) from error
    return SummaryWriter
