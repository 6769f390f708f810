"""From what happens in a run to a tool that draws it."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import uuid4

from grupo.core.component import component_fields, to_code
from grupo.recipe import Recipe
from grupo.rollouts.evaluate import EvalResult

MetricValues = Mapping[str, float]
FINAL_EVALUATION = "after"  # the evaluation that no step follows


def print_to_stderr(line: str) -> None:
    """Say a line beside the program's output."""
    print(line, file=sys.stderr)


class MetricLogger:
    """A watcher that hands every metric on, once for each step.

    Metrics lie at the journal's step, from 0; scores of held-out tasks, `eval/greedy` and so
    on, at the steps done before them. Whatever fails is told of in one line, and then the run goes
    on without. A tool says how it begins, takes a step's numbers, and ends.
    """

    tool = ""

    def __init__(
        self, folder: Path | str, print_line: Callable[[str], None] = print_to_stderr
    ) -> None:
        self.folder, self.print_line = Path(folder), print_line
        self.steps_done, self.first_step, self.has_failed = 0, 0, False
        self.pending_scores: dict[str, float] = {}  # that wait for the step they belong to

    def open(self, recipe: Recipe, step: int) -> int:
        """Begin, or go on; the first step that is not there yet."""
        raise NotImplementedError

    def write(self, step: int, metrics: MetricValues) -> None:
        """Take a step's numbers."""
        raise NotImplementedError

    def close(self) -> None:
        """Nothing more comes."""
        raise NotImplementedError

    def on_train_begin(self, recipe: Recipe, step: int) -> None:
        self.steps_done = step
        self._try(lambda: setattr(self, "first", self.open(recipe, step)))

    def on_message(self, message: str) -> None:
        pass

    def on_evaluate(self, label: str, result: EvalResult) -> None:
        shares = result.to_data()
        self.pending_scores |= {f"eval/{name}": shares[name] for name in shares["intervals"]}
        if label == FINAL_EVALUATION:
            self._send(self.steps_done, {})

    def on_step_end(self, step: int, metrics: MetricValues) -> None:
        self._send(step, metrics)
        self.steps_done = step + 1

    def on_train_end(self) -> None:
        self._try(self.close)

    def _send(self, step: int, metrics: MetricValues) -> None:
        numbers, self.pending_scores = {**self.pending_scores, **metrics}, {}
        if step >= self.first_step:  # steps that are done again after a crash are the same
            self._try(lambda: self.write(step, numbers))

    def _try(self, work: Callable[[], None]) -> None:
        if self.has_failed:
            return
        try:
            work()
        except Exception as error:  # of a library, its threads and the disk: none may end a run
            self.has_failed = True
            why = " ".join(f"{type(error).__name__}: {error}".split())
            self.print_line(f"{self.tool}: writing failed and was given up; the run goes on. {why}")


class LoggerProgress:
    """By what name a tool knows a run, and how far it got: a file in the run's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        known = json.loads(path.read_text()) if path.exists() else {}
        self.name: str = known.get("name", uuid4().hex[:8])
        self.next_step: int = known.get("next", 0)

    def save_next_step(self, next_step: int) -> None:
        """Note which step is the next one."""
        self.next_step = next_step
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps({"name": self.name, "next": next_step}))
        fresh.replace(self.path)


def recipe_config(recipe: Recipe) -> dict[str, str]:
    """The recipe as tools show it: every field as the code that makes it."""
    return {name: to_code(value) for name, value in component_fields(recipe).items()}
