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
from grupo.report.step_line import alarms, clock, facts
from grupo.rollouts.evaluate import Score

EVERY = 5.0  # seconds between plain lines: a log of a day stays readable
RECENT = 10  # steps whose time says how long the rest takes


class Live:
    """A watcher that shows a run on a console.

    On a terminal a bar and a line that change in place; elsewhere a line every few seconds, without
    a colour or a cursor. A warning is said when its cause appears, and again when it comes back.
    """

    def __init__(self, console: Console, now: Callable[[], float] = time.monotonic) -> None:
        self.console, self.now = console, now
        self.steps, self.done, self.line = 0, 0, ""
        self.said_at, self.said_of = float("-inf"), 0
        self.times: deque[float] = deque(maxlen=RECENT)
        self.alarmed: frozenset[str] = frozenset()
        # the display asks for what to show as often as it refreshes
        self.display = Display(console=console, get_renderable=self._picture, transient=True)

    def begun(self, recipe: Recipe, step: int) -> None:
        self.steps, self.done = recipe.steps, step
        self.said(recipe.geometry())
        if step:
            self.said(f"Going on after step {step}.")
        if self.console.is_interactive:
            self.display.start()

    def said(self, line: str) -> None:
        self._print(line)

    def evaluated(self, when: str, score: Score) -> None:
        best = max(score.passes, default=1)
        more = f", pass@{best} {score.passes[best]}" if best > 1 else ""
        lost = f"; {score.failed} could not be judged" if score.failed else ""
        self._print(f"held-out {when}: greedy {score.greedy}, sampled {score.sampled}{more}{lost}")

    def stepped(self, step: int, metrics: Mapping[str, float]) -> None:
        self.done = step + 1
        self.times.append(metrics.get("time/step", 0.0))
        self.line = " | ".join([*facts(metrics), f"{clock(self._left())} left"])
        self._warn(alarms(metrics))
        due = self.now() - self.said_at >= EVERY or self.done == self.steps
        if due and not self.console.is_interactive:
            self._step()

    def ended(self) -> None:
        self.display.stop()
        if self.line and self.said_of < self.done:
            self._step()

    def _step(self) -> None:
        self.said_at, self.said_of = self.now(), self.done
        self._print(f"step {self.done}/{self.steps} | {self.line}")

    def _left(self) -> float:
        return (self.steps - self.done) * sum(self.times) / max(1, len(self.times))

    def _warn(self, now: Mapping[str, str]) -> None:
        for name in now.keys() - self.alarmed:
            self._print(f"Warning, step {self.done}: {now[name]}", "yellow")
        self.alarmed = frozenset(now)

    def _print(self, line: str, style: str = "") -> None:
        self.console.print(literal(line, style), soft_wrap=not self.console.is_interactive)

    def _picture(self) -> Group:
        bar = Table.grid(padding=(0, 1), expand=True)
        bar.add_column(no_wrap=True)
        bar.add_column(ratio=1)
        bar.add_row(
            f"step {self.done}/{self.steps}", ProgressBar(self.steps or 1, completed=self.done)
        )
        return Group(bar, literal(self.line, "dim"))
