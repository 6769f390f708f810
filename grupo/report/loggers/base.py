"""Base class of the metric loggers."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import uuid4

from grupo.core.component import component_fields, to_code
from grupo.recipe import Recipe
from grupo.rollouts.eval_result import EvalResult
from grupo.util.json_text import read_limited
from grupo.util.terminal_text import printable_message

MetricValues = Mapping[str, float]
FIRST_EVALUATION = "before"  # no step precedes this evaluation
FINAL_EVALUATION = "after"  # no step follows this evaluation


def print_to_stderr(line: str) -> None:
    """Print a line to standard error."""
    print(printable_message(line), file=sys.stderr)


class MetricLogger:
    """A callback that writes every metric once per step; subclasses implement open, write, close.

    Metrics have the step of the journal, from 1; held-out scores (`eval/greedy` and so on) have the
    number of steps done before the evaluation. Rows count from 0: the scores before the run, one
    row per step, and the scores after the run. If the logger raises, it prints one line and is
    disabled; the run continues.

    Args:
        folder: where the logger keeps its files.
        print_line: prints the messages of the logger.
    """

    tool = ""

    def __init__(
        self, folder: Path | str, print_line: Callable[[str], None] = print_to_stderr
    ) -> None:
        self.folder = Path(folder)
        self.print_line = print_line
        self.steps_done = 0
        self.first_row = 0
        self.has_failed = False
        self.pending_scores: dict[str, float] = {}  # written with the next step

    def open(self, recipe: Recipe, step: int) -> int:
        """Start or resume after `step` steps; return the first row that is not logged yet."""
        raise NotImplementedError

    def write(self, row: int, step: int, metrics: MetricValues) -> None:
        """Log a row of metrics that were measured after `step` steps."""
        raise NotImplementedError

    def close(self) -> None:
        """Finish logging."""
        raise NotImplementedError

    def on_train_begin(self, recipe: Recipe, step: int) -> None:
        self.steps_done = step
        self._try(lambda: setattr(self, "first_row", self.open(recipe, step)))

    def on_message(self, message: str) -> None:
        pass

    def on_evaluate(self, label: str, result: EvalResult) -> None:
        scores = result.to_data()
        names = scores.keys() - {"intervals", "failed", "tokens_per_answer"}
        self.pending_scores |= {f"eval/{name}": scores[name] for name in sorted(names)}
        if label == FIRST_EVALUATION:
            self._send(0, 0, {})
        if label == FINAL_EVALUATION:
            self._send(self.steps_done + 1, self.steps_done, {})

    def on_step_end(self, step: int, metrics: MetricValues) -> None:
        self._send(step, step, metrics)
        self.steps_done = step

    def on_train_end(self) -> None:
        self._try(self.close)

    def _send(self, row: int, step: int, metrics: MetricValues) -> None:
        values = {**self.pending_scores, **metrics}
        self.pending_scores = {}
        if row >= self.first_row:  # steps repeated after a crash are bit-identical
            self._try(lambda: self.write(row, step, values))

    def _try(self, operation: Callable[[], None]) -> None:
        if self.has_failed:
            return
        try:
            operation()
        except Exception as error:  # of a library, its threads or the disk: none may end the run
            self.has_failed = True
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            self.print_line(f"{self.tool}: logging failed and is disabled. {reason}")


class LoggerProgress:
    """The run's name in a logging tool and the next row to log, kept in the run's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        saved = json.loads(read_limited(path)) if path.exists() else {}
        self.name: str = saved.get("name", uuid4().hex[:8])
        self.next_row: int = saved.get("next_row", 0)

    def save_next_row(self, next_row: int) -> None:
        """Save the next row to log."""
        self.next_row = next_row
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(".new")
        temporary.write_text(json.dumps({"name": self.name, "next_row": next_row}))
        temporary.replace(self.path)


def recipe_config(recipe: Recipe) -> dict[str, str]:
    """The recipe as a flat config: every field as code."""
    return {name: to_code(value) for name, value in component_fields(recipe).items()}
