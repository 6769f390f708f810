"""A list of callbacks forwards every event to each of them."""

from grupo.rollouts.eval_result import EvalResult, Proportion
from grupo.toy.quickstart import RECIPE
from grupo.training.callbacks import CallbackList, NullCallback

ZERO = Proportion(0, 0, 0)
RESULT = EvalResult(ZERO, ZERO, {1: ZERO})


class RecordingCallback:
    def __init__(self) -> None:
        self.events: list[tuple] = []

    def on_train_begin(self, *args) -> None:
        self.events.append(("on_train_begin", *args))

    def on_message(self, *args) -> None:
        self.events.append(("on_message", *args))

    def on_evaluate(self, *args) -> None:
        self.events.append(("on_evaluate", *args))

    def on_step_end(self, *args) -> None:
        self.events.append(("on_step_end", *args))

    def on_train_end(self, *args) -> None:
        self.events.append(("on_train_end", *args))


def test_every_callback_of_a_list_receives_every_event():
    first, second = RecordingCallback(), RecordingCallback()
    callbacks = CallbackList([first, NullCallback(), second])
    callbacks.on_train_begin(RECIPE, 3)
    callbacks.on_message("a line")
    callbacks.on_evaluate("before", RESULT)
    callbacks.on_step_end(4, {"loss": 0.5})
    callbacks.on_train_end()
    expected = [
        ("on_train_begin", RECIPE, 3),
        ("on_message", "a line"),
        ("on_evaluate", "before", RESULT),
        ("on_step_end", 4, {"loss": 0.5}),
        ("on_train_end",),
    ]
    assert first.events == second.events == expected
