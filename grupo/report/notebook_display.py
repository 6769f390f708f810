"""Training progress in Jupyter: one output below the cell, updated in place."""

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol

from grupo.recipe import Recipe
from grupo.report.progress_line import Progress, progress_line
from grupo.report.step_line import active_alarms, step_summary
from grupo.report.tables import eval_rows
from grupo.rollouts.eval_result import EvalResult
from grupo.rollouts.eval_scores import evaluated_step
from grupo.util import html

UPDATE_INTERVAL = 0.5  # seconds between updates of the output
TIMING_WINDOW = 10  # steps whose mean time gives the estimate of the remaining time
MAX_MESSAGES = 40  # the newest ones are shown


class Output(Protocol):
    """An output of a cell that can be replaced."""

    def update(self, content: str) -> None:
        """Replace the HTML."""
        ...


class CellOutput:
    """An output of the cell that is executed, replaced through its display id."""

    def __init__(self) -> None:
        from IPython.display import HTML, DisplayHandle

        self.make_html = HTML
        self.handle = DisplayHandle()
        self.handle.display(HTML(""))

    def update(self, content: str) -> None:
        self.handle.update(self.make_html(content))


class NotebookDisplay:
    """A callback that shows a run in a notebook: a bar, a line of numbers, the messages, scores.

    Args:
        open_output: makes the output when the run begins.
        now: the clock, in seconds.
    """

    def __init__(
        self,
        open_output: Callable[[], Output] = CellOutput,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.open_output = open_output
        self.now = now
        self.output: Output | None = None
        self.updated_at = -math.inf
        self.max_steps = 1
        self.step = 0
        self.line = ""
        self.details = ""
        self.rewards: list[float] = []
        self.messages: deque[str] = deque(maxlen=MAX_MESSAGES)
        self.scores: dict[str, Mapping[str, object]] = {}
        self.held_out = math.nan
        self.held_out_step = 0
        self.num_warnings = 0
        self.step_seconds: deque[float] = deque(maxlen=TIMING_WINDOW)
        self.active_alarms: frozenset[str] = frozenset()

    def on_train_begin(self, recipe: Recipe, step: int) -> None:
        self.output = self.open_output()
        self.max_steps = recipe.max_steps
        self.step = step
        self.line = recipe.describe_step()
        self._update()

    def on_message(self, message: str) -> None:
        self.messages.append(message)
        self._update()

    def on_evaluate(self, label: str, result: EvalResult) -> None:
        self.scores[label] = result.to_data()
        self.held_out = result.sampled.value
        self.held_out_step = evaluated_step(label, self.step)
        self._update()

    def on_step_end(self, step: int, metrics: Mapping[str, float]) -> None:
        self.step = step
        self.step_seconds.append(metrics.get("time/step", 0.0))
        self.rewards.append(metrics.get("reward/mean", math.nan))
        self._add_alarms(active_alarms(metrics))
        seconds = sum(self.step_seconds) / len(self.step_seconds)
        left = (self.max_steps - step) * seconds
        progress = Progress(
            step, self.max_steps, self.held_out, self.held_out_step, left, self.num_warnings
        )
        self.line = progress_line(progress, metrics).plain
        self.details = " | ".join(step_summary(metrics))
        if self.now() - self.updated_at >= UPDATE_INTERVAL:
            self._update()

    def on_train_end(self) -> None:
        self._update()

    def to_html(self) -> str:
        """The current state as HTML."""
        label = f"step {self.step} of {self.max_steps}"
        messages = "".join(f"<li>{html.escape(message)}</li>" for message in self.messages)
        header, *rows = eval_rows(self.scores)
        cells = [list(map(html.escape, row)) for row in (header, *rows)]
        return html.fragment(
            f'<progress value="{self.step}" max="{self.max_steps}" aria-label="{label}"'
            ' style="width:100%"></progress>',
            html.paragraph(f"<b>{html.escape(self.line)}</b>"),
            html.curve(self.rewards, "mean reward of each step"),
            html.paragraph(f"<small>{html.escape(self.details)}</small>") if self.details else "",
            f"<ul>{messages}</ul>" if messages else "",
            html.table(cells[0], cells[1:], "held-out tasks solved") if self.scores else "",
        )

    def _update(self) -> None:
        if self.output:
            self.updated_at = self.now()
            self.output.update(self.to_html())

    def _add_alarms(self, alarms: Mapping[str, str]) -> None:
        for name, message in alarms.items():
            if name not in self.active_alarms:
                self.num_warnings += 1
                self.messages.append(f"Warning, step {self.step}: {message}")
        self.active_alarms = frozenset(alarms)
