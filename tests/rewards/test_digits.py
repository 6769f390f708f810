"""Pictures of digits, judged by classifiers that never saw them."""

import pytest
import torch

pytest.importorskip("sklearn")

from grupo.errors import Refused
from grupo.rewards.digits import LooksLike, handwritten, linear, neighbours
from grupo.rollout import Action, Rollout, Task
from grupo.storage import arrays
from grupo.tasks.digits import NAMES, Digits, digit_of


def shown(number):
    """A rollout that made this image, grey."""
    image = (handwritten()[0][number] * 255).round().to(torch.uint8).expand(3, 8, 8)
    return Rollout((("?", Action((), (), made=arrays.text(image))),))


def named(number):
    """The task of the digit that this image shows."""
    return Task("k", NAMES[int(handwritten()[1][number])])


@pytest.mark.parametrize(("judge", "unseen"), [(linear, 1), (neighbours, 0)])
def test_a_digit_that_it_never_saw_is_read_right(judge, unseen):
    some = range(unseen, 200, 2)
    likely = [LooksLike(judge).judge(named(i), shown(i)) for i in some]
    assert sum(x > 0.5 for x in likely) >= 0.85 * len(some)


def test_probabilities_of_all_digits_add_up_to_one():
    likely = [LooksLike(linear).judge(Task("k", name), shown(1)) for name in NAMES]
    assert sum(likely) == pytest.approx(1.0)
    assert max(likely) == LooksLike(linear).judge(named(1), shown(1))


def test_there_is_a_task_for_every_digit():
    assert [digit_of(str(task.prompt)) for task in Digits().load()] == list(range(10))
    with pytest.raises(Refused, match="'sevn' names no digit"):
        digit_of("sevn")
