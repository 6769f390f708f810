"""Whoever looks on."""

from grupo.rollouts.evaluate import EvalResult, Proportion
from grupo.toy.quickstart import RECIPE
from grupo.training.callbacks import CallbackList, NullCallback

ZERO = Proportion(0, 0, 0)
SCORE = EvalResult(ZERO, ZERO, {1: ZERO})


class Notes:
    def __init__(self) -> None:
        self.seen: list[tuple] = []

    def begun(self, *told) -> None:
        self.seen.append(("begun", *told))

    def said(self, *told) -> None:
        self.seen.append(("said", *told))

    def evaluated(self, *told) -> None:
        self.seen.append(("evaluated", *told))

    def stepped(self, *told) -> None:
        self.seen.append(("stepped", *told))

    def ended(self, *told) -> None:
        self.seen.append(("ended", *told))


def test_all_of_several_watchers_are_told_the_same():
    first, second = Notes(), Notes()
    together = CallbackList([first, NullCallback(), second])
    together.on_train_begin(RECIPE, 3)
    together.on_message("a line")
    together.on_evaluate("before", SCORE)
    together.on_step_end(4, {"loss": 0.5})
    together.on_train_end()
    assert (
        first.seen
        == second.seen
        == [
            ("begun", RECIPE, 3),
            ("said", "a line"),
            ("evaluated", "before", SCORE),
            ("stepped", 4, {"loss": 0.5}),
            ("ended",),
        ]
    )
