"""Findings about a run, and their locations."""

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from grupo.report.checks.group_summary import GroupSummary
from grupo.report.checks.run_data import RunData

Severity = Literal["error", "warning", "note"]
MAX_LOCATIONS = 3  # of a finding; the first are kept


@dataclass(frozen=True)
class Location:
    """A place in a run: a step, and optionally a group, a rollout and an action in it.

    Args:
        step: counted from 1.
        task: the key of the group's task; "": every group of the step.
        rollout: the index in the group, in the order of the journal; None: every rollout.
        action: the index in the rollout; None: every action.
        token: the token id of the action, where known.
    """

    step: int
    task: str = ""
    rollout: int | None = None
    action: int | None = None
    token: int | None = None

    def __str__(self) -> str:
        indices = (("rollout", self.rollout), ("action", self.action), ("token", self.token))
        task = [f"task {self.task[:8]}"] * bool(self.task)
        inside = [f"{name} {number}" for name, number in indices if number is not None]
        return ", ".join([f"step {self.step}", *task, *inside])


@dataclass(frozen=True)
class Finding:
    """A diagnosis of a run.

    Args:
        name: the kind of problem, in a few words.
        severity: "error", "warning", or "note" (nothing to worry about).
        details: the numbers and steps; steps count from 1.
        causes: probable causes, the most probable first.
        suggestions: what to try; RUN stands for the folder of the run.
        locations: where to look, the clearest first.
    """

    name: str
    severity: Severity
    details: str
    causes: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()
    locations: tuple[Location, ...] = ()

    def with_folder(self, folder: str) -> "Finding":
        """The finding with the run's folder in place of RUN, quoted for a shell."""
        path = shlex.quote(folder)
        suggestions = (re.sub(r"\bRUN\b", lambda _: path, text) for text in self.suggestions)
        return replace(self, suggestions=tuple(suggestions))


Check = Callable[[RunData], Iterable[Finding]]


@dataclass(frozen=True)
class FindingTemplate:
    """A finding without its details."""

    name: str
    severity: Severity
    causes: tuple[str, ...]
    suggestions: tuple[str, ...]

    def __call__(
        self, details: str, subject: str = "", locations: Iterable[Location] = ()
    ) -> Finding:
        """The finding; `subject` names the metric or reward term that it is about."""
        name = f"{self.name}: {subject}" if subject else self.name
        first = tuple(locations)[:MAX_LOCATIONS]
        return Finding(name, self.severity, details, self.causes, self.suggestions, first)


def rollout_locations(groups: Iterable[GroupSummary], field: str) -> list[Location]:
    """The rollouts whose indices are in the given field of each group."""
    return [Location(g.step, g.task, number) for g in groups for number in getattr(g, field)]


def step_locations(steps: Iterable[int]) -> list[Location]:
    """Steps as locations."""
    return [Location(step) for step in steps]


def format_steps(steps: Sequence[int]) -> str:
    """Steps as text: all of up to three, otherwise the first and the last.

    >>> format_steps([4]), format_steps([1, 4]), format_steps([0, 1, 2, 3, 9])
    ('step 4', 'steps 1, 4', '5 steps from 0 to 9')
    """
    if len(steps) == 1:
        return f"step {steps[0]}"
    if len(steps) > 3:
        return f"{len(steps)} steps from {steps[0]} to {steps[-1]}"
    return f"steps {', '.join(map(str, steps))}"
