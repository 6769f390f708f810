"""A run while it goes: a bar and a line of facts, or plain lines where nobody looks."""

import time
from collections import deque
from collections.abc import Callable, Mapping

from rich.console import Console, Group
from rich.live import Live as Display
from rich.progress_bar import ProgressBar
from rich.table import Table

from grupo.recipe import Recipe
from grupo.report.escape import literal
from grupo.report.step_line import active_alarms, format_duration, step_summary
from grupo.rollouts.evaluate import EvalResult

PRINT_INTERVAL = 5.0  # seconds between plain lines: a log of a day stays readable
TIMING_WINDOW = 10  # steps whose time says how long the rest takes


class ProgressDisplay:
    """A watcher that shows a run on a console.

    On a terminal a bar and a line that change in place; elsewhere a line every few seconds, without
    a colour or a cursor. A warning is said when its cause appears, and again when it comes back.
    """

    def __init__(self, console: Console, now: Callable[[], float] = time.monotonic) -> None:
        self.console, self.now = console, now
        self.max_steps, self.steps_done, self.step_line = 0, 0, ""
        self.last_printed_at, self.last_printed_step = float("-inf"), 0
        self.step_seconds: deque[float] = deque(maxlen=TIMING_WINDOW)
        self.active_alarms: frozenset[str] = frozenset()
        # the display asks for what to show as often as it refreshes
        self.display = Display(console=console, get_renderable=self._renderable, transient=True)

    def on_train_begin(self, recipe: Recipe, step: int) -> None:
        self.max_steps, self.steps_done = recipe.max_steps, step
        self.on_message(recipe.describe_step())
        if step:
            self.on_message(f"Going on after step {step}.")
        if self.console.is_interactive:
            self.display.start()

    def on_message(self, message: str) -> None:
        self._print(message)

    def on_evaluate(self, label: str, result: EvalResult) -> None:
        best = max(result.pass_at_k, default=1)
        more = f", pass@{best} {result.pass_at_k[best]}" if best > 1 else ""
        lost = f"; {result.num_failed} could not be judged" if result.num_failed else ""
        self._print(
            f"held-out {label}: greedy {result.greedy}, sampled {result.sampled}{more}{lost}"
        )

    def on_step_end(self, step: int, metrics: Mapping[str, float]) -> None:
        self.steps_done = step + 1
        self.step_seconds.append(metrics.get("time/step", 0.0))
        self.step_line = " | ".join(
            [*step_summary(metrics), f"{format_duration(self._seconds_left())} left"]
        )
        self._print_new_alarms(active_alarms(metrics))
        due = (
            self.now() - self.last_printed_at >= PRINT_INTERVAL or self.steps_done == self.max_steps
        )
        if due and not self.console.is_interactive:
            self._print_step()

    def on_train_end(self) -> None:
        self.display.stop()
        if self.step_line and self.last_printed_step < self.steps_done:
            self._print_step()

    def _print_step(self) -> None:
        self.last_printed_at, self.last_printed_step = self.now(), self.steps_done
        self._print(f"step {self.steps_done}/{self.max_steps} | {self.step_line}")

    def _seconds_left(self) -> float:
        return (
            (self.max_steps - self.steps_done)
            * sum(self.step_seconds)
            / max(1, len(self.step_seconds))
        )

    def _print_new_alarms(self, now: Mapping[str, str]) -> None:
        for name in now.keys() - self.active_alarms:
            self._print(f"Warning, step {self.steps_done}: {now[name]}", "yellow")
        self.active_alarms = frozenset(now)

    def _print(self, line: str, style: str = "") -> None:
        self.console.print(literal(line, style), soft_wrap=not self.console.is_interactive)

    def _renderable(self) -> Group:
        bar = Table.grid(padding=(0, 1), expand=True)
        bar.add_column(no_wrap=True)
        bar.add_column(ratio=1)
        bar.add_row(
            f"step {self.steps_done}/{self.max_steps}",
            ProgressBar(self.max_steps or 1, completed=self.steps_done),
        )
        return Group(bar, literal(self.step_line, "dim"))
