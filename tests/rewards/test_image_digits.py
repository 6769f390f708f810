"""Pictures of digits, judged by classifiers that never saw them."""

import pytest
import torch

pytest.importorskip("sklearn")

from grupo.core.errors import ConfigError
from grupo.core.types import Action, Rollout, Task
from grupo.rewards.image_digits import (
    DigitProbability,
    DigitSimilarity,
    knn_classifier,
    linear_classifier,
    load_digit_images,
)
from grupo.storage import tensor_text
from grupo.tasks.digit_captions import DIGIT_NAMES, DigitTasks, parse_digit


def shown(number):
    """A rollout that made this image, grey."""
    image = (load_digit_images()[0][number] * 255).round().to(torch.uint8).expand(3, 8, 8)
    return Rollout((("?", Action((), (), image=tensor_text.encode_tensor(image))),))


def named(number):
    """The task of the digit that this image shows."""
    return Task("k", DIGIT_NAMES[int(load_digit_images()[1][number])])


@pytest.mark.parametrize(("judge", "unseen"), [(linear_classifier, 1), (knn_classifier, 0)])
def test_a_digit_that_it_never_saw_is_read_right(judge, unseen):
    some = range(unseen, 200, 2)
    likely = [DigitProbability(judge).score(named(i), shown(i)) for i in some]
    assert sum(x > 0.5 for x in likely) >= 0.85 * len(some)


def test_probabilities_of_all_digits_add_up_to_one():
    likely = [
        DigitProbability(linear_classifier).score(Task("k", name), shown(1)) for name in DIGIT_NAMES
    ]
    assert sum(likely) == pytest.approx(1.0)
    assert max(likely) == DigitProbability(linear_classifier).score(named(1), shown(1))


def test_there_is_a_task_for_every_digit():
    assert [parse_digit(str(task.prompt)) for task in DigitTasks().load()] == list(range(10))
    with pytest.raises(ConfigError, match="'sevn' names no digit"):
        parse_digit("sevn")


def test_a_tint_costs_what_it_is_off_and_a_true_digit_nothing():
    judge = DigitSimilarity().score
    assert judge(named(0), shown(0)) == pytest.approx(1.0, abs=3e-3)  # 8 bits a channel
    image = load_digit_images()[0][0].expand(3, 8, 8).clone()
    image[1] = (image[1] - 0.3).abs()  # of the three colours one is .3 off, or less
    made = tensor_text.encode_tensor((image * 255).round().to(torch.uint8))
    tinted = Rollout((("?", Action((), (), image=made)),))
    off = (image[1] - image[0]).square().mean().item() / 3
    assert judge(named(0), tinted) == pytest.approx(1 - off**0.5, abs=5e-3)
    assert judge(Task("k", "one"), shown(0)) < 0.8
