"""Whoever looks on while a run goes: the seam between the trainer and what people see."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from grupo.recipe import Recipe
from grupo.rollouts.evaluate import Score


class Watcher(Protocol):
    """Is told what happens; nothing it does reaches the run."""

    def begun(self, recipe: Recipe, step: int) -> None: ...

    def said(self, line: str) -> None: ...

    def evaluated(self, when: str, score: Score) -> None: ...

    def stepped(self, step: int, metrics: Mapping[str, float]) -> None: ...

    def ended(self) -> None: ...


class Silent:
    """Looks away."""

    def begun(self, recipe: Recipe, step: int) -> None:
        pass

    def said(self, line: str) -> None:
        pass

    def evaluated(self, when: str, score: Score) -> None:
        pass

    def stepped(self, step: int, metrics: Mapping[str, float]) -> None:
        pass

    def ended(self) -> None:
        pass


class All:
    """Several watchers as one."""

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        self.watchers = watchers

    def begun(self, recipe: Recipe, step: int) -> None:
        for watcher in self.watchers:
            watcher.begun(recipe, step)

    def said(self, line: str) -> None:
        for watcher in self.watchers:
            watcher.said(line)

    def evaluated(self, when: str, score: Score) -> None:
        for watcher in self.watchers:
            watcher.evaluated(when, score)

    def stepped(self, step: int, metrics: Mapping[str, float]) -> None:
        for watcher in self.watchers:
            watcher.stepped(step, metrics)

    def ended(self) -> None:
        for watcher in self.watchers:
            watcher.ended()
