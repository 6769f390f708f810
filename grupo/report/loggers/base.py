"""Base class of the metric loggers."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import uuid4

from grupo.core.component import component_fields, to_code
from grupo.recipe import Recipe
from grupo.rollouts.evaluate import EvalResult

MetricValues = Mapping[str, float]
FINAL_EVALUATION = "after"  # no step follows this evaluation


def print_to_stderr(line: str) -> None:
    """Print a line to standard error."""
    print(line, file=sys.stderr)


class MetricLogger:
    """A callback that writes every metric once per step; subclasses implement open, write, close.

    Metrics have the step of the journal, from 0; held-out scores (`eval/greedy` and so on) have the
    number of steps done before the evaluation. If the logger raises, it prints one line and is
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
        self.first_step = 0
        self.has_failed = False
        self.pending_scores: dict[str, float] = {}  # written with the next step

    def open(self, recipe: Recipe, step: int) -> int:
        """Start or resume logging; return the first step that is not logged yet."""
        raise NotImplementedError

    def write(self, step: int, metrics: MetricValues) -> None:
        """Log the metrics of a step."""
        raise NotImplementedError

    def close(self) -> None:
        """Finish logging."""
        raise NotImplementedError

    def on_train_begin(self, recipe: Recipe, step: int) -> None:
        self.steps_done = step
        self._try(lambda: setattr(self, "first_step", self.open(recipe, step)))

    def on_message(self, message: str) -> None:
        pass

    def on_evaluate(self, label: str, result: EvalResult) -> None:
        scores = result.to_data()
        self.pending_scores |= {f"eval/{name}": scores[name] for name in scores["intervals"]}
        if label == FINAL_EVALUATION:
            self._send(self.steps_done, {})

    def on_step_end(self, step: int, metrics: MetricValues) -> None:
        self._send(step, metrics)
        self.steps_done = step + 1

    def on_train_end(self) -> None:
        self._try(self.close)

    def _send(self, step: int, metrics: MetricValues) -> None:
        values = {**self.pending_scores, **metrics}
        self.pending_scores = {}
        if step >= self.first_step:  # steps repeated after a crash are bit-identical
            self._try(lambda: self.write(step, values))

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
    """The run's name in a logging tool and the next step to log, kept in the run's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        saved = json.loads(path.read_text()) if path.exists() else {}
        self.name: str = saved.get("name", uuid4().hex[:8])
        self.next_step: int = saved.get("next_step", 0)

    def save_next_step(self, next_step: int) -> None:
        """Save the next step to log."""
        self.next_step = next_step
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(".new")
        temporary.write_text(json.dumps({"name": self.name, "next_step": next_step}))
        temporary.replace(self.path)


def recipe_config(recipe: Recipe) -> dict[str, str]:
    """The recipe as a flat config: every field as code."""
    return {name: to_code(value) for name, value in component_fields(recipe).items()}
