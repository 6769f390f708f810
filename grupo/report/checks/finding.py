"""Something worth knowing about a run."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from grupo.report.checks.evidence import Evidence

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """What was seen, what causes it as a rule, and what to try; a note is no reason to worry."""

    name: str
    severity: Severity
    seen: str  # with the numbers and the steps, as the journal counts them: from 0
    causes: tuple[str, ...] = ()  # most probable first
    tries: tuple[str, ...] = ()


Check = Callable[[Evidence], Iterable[Finding]]


@dataclass(frozen=True)
class Advice:
    """A finding that waits for what was seen."""

    name: str
    severity: Severity
    causes: tuple[str, ...]
    tries: tuple[str, ...]

    def __call__(self, seen: str, of: str = "") -> Finding:
        """The finding; `of` says which of several things it is about."""
        name = f"{self.name}: {of}" if of else self.name
        return Finding(name, self.severity, seen, self.causes, self.tries)


def span(steps: Sequence[int]) -> str:
    """Steps in words: all of a few, the ends of many.

    >>> span([4]), span([1, 4]), span([0, 1, 2, 3, 9])
    ('step 4', 'steps 1, 4', '5 steps from 0 to 9')
    """
    if len(steps) == 1:
        return f"step {steps[0]}"
    few = ", ".join(map(str, steps))
    return (
        f"steps {few}" if len(steps) < 4 else f"{len(steps)} steps from {steps[0]} to {steps[-1]}"
    )
