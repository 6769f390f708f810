"""Something worth knowing about a run."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from grupo.report.checks.group_summary import GroupSummary
from grupo.report.checks.run_data import RunData

Severity = Literal["error", "warning", "note"]
MAX_LOCATIONS = 3  # places named of many


@dataclass(frozen=True)
class Location:
    """Where in a run something is to be seen: a step, a group, a rollout of it, an action of that.

    Steps and actions count from 0, rollouts in the order of the journal; None: all of them.
    """

    step: int
    task: str = ""
    rollout: int | None = None
    action: int | None = None
    token: int | None = None  # the tokenizer's number for what was done there

    def __str__(self) -> str:
        named = (("rollout", self.rollout), ("action", self.action), ("token", self.token))
        said = [f"{name} {number}" for name, number in named if number is not None]
        return ", ".join(
            [f"step {self.step}", *([f"task {self.task[:8]}"] * bool(self.task)), *said]
        )


@dataclass(frozen=True)
class Finding:
    """What was seen and where, what causes it as a rule, and what to try; a note is no worry."""

    name: str
    severity: Severity
    details: str  # with the numbers and the steps, as the journal counts them: from 0
    causes: tuple[str, ...] = ()  # most probable first
    suggestions: tuple[str, ...] = ()
    locations: tuple[Location, ...] = ()  # where to look, the clearest first


Check = Callable[[RunData], Iterable[Finding]]


@dataclass(frozen=True)
class FindingTemplate:
    """A finding that waits for what was seen."""

    name: str
    severity: Severity
    causes: tuple[str, ...]
    suggestions: tuple[str, ...]

    def __call__(
        self, details: str, subject: str = "", locations: Iterable[Location] = ()
    ) -> Finding:
        """The finding; `of` says which of several things it is about, `at` where it is seen."""
        name = f"{self.name}: {subject}" if subject else self.name
        places = tuple(locations)[:MAX_LOCATIONS]
        return Finding(name, self.severity, details, self.causes, self.suggestions, places)


def rollout_locations(groups: Iterable[GroupSummary], field: str) -> list[Location]:
    """The rollouts that a field of the groups names by number."""
    return [Location(g.step, g.task, number) for g in groups for number in getattr(g, field)]


def step_locations(steps: Iterable[int]) -> list[Location]:
    """Steps as places."""
    return [Location(step) for step in steps]


def format_steps(steps: Sequence[int]) -> str:
    """Steps in words: all of a few, the ends of many.

    >>> format_steps([4]), format_steps([1, 4]), format_steps([0, 1, 2, 3, 9])
    ('step 4', 'steps 1, 4', '5 steps from 0 to 9')
    """
    if len(steps) == 1:
        return f"step {steps[0]}"
    few = ", ".join(map(str, steps))
    return (
        f"steps {few}" if len(steps) < 4 else f"{len(steps)} steps from {steps[0]} to {steps[-1]}"
    )
