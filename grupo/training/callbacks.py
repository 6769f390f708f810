"""Callbacks: the interface between the trainer and displays, loggers and other observers."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from grupo.recipe import Recipe
from grupo.rollouts.eval_result import EvalResult


class Callback(Protocol):
    """Receives the events of a run; with several ranks, only those of rank 0.

    A callback does not change the results of a run. An exception of a callback ends the run.
    """

    def on_train_begin(self, recipe: Recipe, step: int) -> None:
        """The run starts, or resumes after `step` steps."""
        ...

    def on_message(self, message: str) -> None:
        """A note for the user, such as a warning of the policy or an OOM retry."""
        ...

    def on_evaluate(self, label: str, result: EvalResult) -> None:
        """The evaluation tasks were attempted; `label` is "before", "after" or "step N".

        The event of "step N" precedes `on_step_end` of the step.
        """
        ...

    def on_step_end(self, step: int, metrics: Mapping[str, float]) -> None:
        """A training step, counted from 1, has ended and is logged."""
        ...

    def on_train_end(self) -> None:
        """The run has ended, with or without an exception."""
        ...


class NullCallback:
    """Ignores all events."""

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
    """Several callbacks as one: each event goes to all of them, in order."""

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        self.callbacks = callbacks

    def on_train_begin(self, recipe: Recipe, step: int) -> None:
        for callback in self.callbacks:
            callback.on_train_begin(recipe, step)

    def on_message(self, message: str) -> None:
        for callback in self.callbacks:
            callback.on_message(message)

    def on_evaluate(self, label: str, result: EvalResult) -> None:
        for callback in self.callbacks:
            callback.on_evaluate(label, result)

    def on_step_end(self, step: int, metrics: Mapping[str, float]) -> None:
        for callback in self.callbacks:
            callback.on_step_end(step, metrics)

    def on_train_end(self) -> None:
        for callback in self.callbacks:
            callback.on_train_end()
