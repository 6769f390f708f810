"""Whoever looks on while a run goes: the seam between the trainer and what people see."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from grupo.recipe import Recipe
from grupo.rollouts.evaluate import EvalResult


class Callback(Protocol):
    """Is told what happens; nothing it does reaches the run."""

    def on_train_begin(self, recipe: Recipe, step: int) -> None: ...

    def on_message(self, message: str) -> None: ...

    def on_evaluate(self, label: str, result: EvalResult) -> None: ...

    def on_step_end(self, step: int, metrics: Mapping[str, float]) -> None: ...

    def on_train_end(self) -> None: ...


class NullCallback:
    """Looks away."""

    def on_train_begin(self, recipe: Recipe, step: int) -> None:
        pass

    def on_message(self, message: str) -> None:
        pass

    def on_evaluate(self, label: str, result: EvalResult) -> None:
        pass

    def on_step_end(self, step: int, metrics: Mapping[str, float]) -> None:
        pass

    def on_train_end(self) -> None:
        pass


class CallbackList:
    """Several watchers as one."""

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        self.callbacks = callbacks

    def on_train_begin(self, recipe: Recipe, step: int) -> None:
        for watcher in self.callbacks:
            watcher.on_train_begin(recipe, step)

    def on_message(self, message: str) -> None:
        for watcher in self.callbacks:
            watcher.on_message(message)

    def on_evaluate(self, label: str, result: EvalResult) -> None:
        for watcher in self.callbacks:
            watcher.on_evaluate(label, result)

    def on_step_end(self, step: int, metrics: Mapping[str, float]) -> None:
        for watcher in self.callbacks:
            watcher.on_step_end(step, metrics)

    def on_train_end(self) -> None:
        for watcher in self.callbacks:
            watcher.on_train_end()
