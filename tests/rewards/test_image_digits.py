"""Pictures of digits, judged by classifiers that never saw them."""

import pytest
import torch

pytest.importorskip("sklearn")

from grupo.core.errors import Refused
from grupo.core.types import Action, Rollout, Task
from grupo.rewards.image_digits import Handwritten, LooksLike, handwritten, linear, neighbours
from grupo.storage import tensor_text
from grupo.tasks.digit_captions import NAMES, Digits, digit_of


def shown(number):
    """A rollout that made this image, grey."""
    image = (handwritten()[0][number] * 255).round().to(torch.uint8).expand(3, 8, 8)
    return Rollout((("?", Action((), (), made=tensor_text.text(image))),))


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


def test_a_tint_costs_what_it_is_off_and_a_true_digit_nothing():
    judge = Handwritten().judge
    assert judge(named(0), shown(0)) == pytest.approx(1.0, abs=3e-3)  # 8 bits a channel
    image = handwritten()[0][0].expand(3, 8, 8).clone()
    image[1] = (image[1] - 0.3).abs()  # of the three colours one is .3 off, or less
    made = tensor_text.text((image * 255).round().to(torch.uint8))
    tinted = Rollout((("?", Action((), (), made=made)),))
    off = (image[1] - image[0]).square().mean().item() / 3
    assert judge(named(0), tinted) == pytest.approx(1 - off**0.5, abs=5e-3)
    assert judge(Task("k", "one"), shown(0)) < 0.8
