"""Training progress on the console: a live bar on a terminal, plain lines elsewhere."""

import math
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping

from rich.console import Console, Group
from rich.file_proxy import FileProxy
from rich.live import Live as Display
from rich.progress_bar import ProgressBar
from rich.text import Text

from grupo.recipe import Recipe
from grupo.report.escape import literal
from grupo.report.progress_line import MAX_COLUMNS, Progress, progress_line
from grupo.report.step_line import active_alarms, step_summary
from grupo.rollouts.eval_result import EvalResult
from grupo.rollouts.eval_scores import evaluated_step
from grupo.util.console import LinesOfThreads

PRINT_INTERVAL = 5.0  # seconds between plain lines: the log of a day stays readable
TIMING_WINDOW = 10  # steps whose mean time gives the estimate of the remaining time


class ProgressDisplay:
    """A callback that shows a run on a console.

    A terminal gets a bar and a line of at most 80 columns that are redrawn in place. Other outputs
    get such a line every `PRINT_INTERVAL` seconds, without colours or cursor movements. An alarm is
    printed when its cause appears, and again when the cause returns after a step without it.

    Args:
        console: the rich console to print on.
        now: the clock, in seconds.
        verbose: print all main metrics of each printed step in a second line.
    """

    def __init__(
        self,
        console: Console,
        now: Callable[[], float] = time.monotonic,
        *,
        verbose: bool = False,
    ) -> None:
        self.console = console
        self.now = now
        self.verbose = verbose
        self.max_steps = 0
        self.steps_done = 0
        self.step_line = Text()
        self.details = ""
        self.held_out = math.nan
        self.held_out_step = 0
        self.num_warnings = 0
        self.last_printed_at = float("-inf")
        self.last_printed_step = 0
        self.step_seconds: deque[float] = deque(maxlen=TIMING_WINDOW)
        self.active_alarms: frozenset[str] = frozenset()
        # a callback rather than a renderable: the display calls it at every refresh
        self.display = Display(console=console, get_renderable=self._renderable, transient=True)

    def on_train_begin(self, recipe: Recipe, step: int) -> None:
        self.max_steps = recipe.max_steps
        self.steps_done = step
        self.on_message(recipe.describe_step())
        if step:
            self.on_message(f"Resuming after step {step}.")
        if self.console.is_interactive:
            self.display.start()
            if isinstance(sys.stdout, FileProxy):  # redirected until the display stops
                sys.stdout = LinesOfThreads(sys.stdout)

    def on_message(self, message: str) -> None:
        self._print(message)

    def on_evaluate(self, label: str, result: EvalResult) -> None:
        self.held_out = result.sampled.value
        self.held_out_step = evaluated_step(label, self.steps_done)
        self._print(f"held-out {label}: {result}")

    def on_step_end(self, step: int, metrics: Mapping[str, float]) -> None:
        self.steps_done = step
        self.step_seconds.append(metrics.get("time/step", 0.0))
        self._print_new_alarms(active_alarms(metrics))
        progress = Progress(
            step,
            self.max_steps,
            self.held_out,
            self.held_out_step,
            self._seconds_left(),
            self.num_warnings,
        )
        self.step_line = progress_line(progress, metrics)
        self.details = " | ".join(step_summary(metrics))
        is_due = (
            self.now() - self.last_printed_at >= PRINT_INTERVAL or self.steps_done == self.max_steps
        )
        if is_due and not self.console.is_interactive:
            self._print_step()

    def on_train_end(self) -> None:
        if isinstance(sys.stdout, LinesOfThreads):
            sys.stdout.end_lines()
        self.display.stop()
        if self.step_line and self.last_printed_step < self.steps_done:
            self._print_step()

    def _print_step(self) -> None:
        self.last_printed_at = self.now()
        self.last_printed_step = self.steps_done
        self.console.print(self.step_line, soft_wrap=True)
        if self.verbose:
            self._print(f"  {self.details}")

    def _seconds_left(self) -> float:
        mean_seconds = sum(self.step_seconds) / max(1, len(self.step_seconds))
        return (self.max_steps - self.steps_done) * mean_seconds

    def _print_new_alarms(self, alarms: Mapping[str, str]) -> None:
        for name, message in alarms.items():
            if name not in self.active_alarms:
                self.num_warnings += 1
                self._print(f"Warning, step {self.steps_done}: {message}", "yellow")
        self.active_alarms = frozenset(alarms)

    def _print(self, line: str, style: str = "") -> None:
        self.console.print(literal(line, style), soft_wrap=not self.console.is_interactive)

    def _renderable(self) -> Group:
        bar = ProgressBar(self.max_steps or 1, completed=self.steps_done, width=MAX_COLUMNS)
        details = [literal(self.details, "dim")] * self.verbose
        return Group(bar, self.step_line, *details)
