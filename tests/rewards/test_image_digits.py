"""Rewards for images of digits."""

import pytest
import torch

pytest.importorskip("sklearn")

from grupo.core.types import Response, Rollout, Task
from grupo.rewards.image_digits import (
    DigitProbability,
    DigitSimilarity,
    knn_classifier,
    linear_classifier,
    load_digit_images,
)
from grupo.storage import tensor_text
from grupo.tasks.digit_captions import DIGIT_NAMES, DigitTasks, parse_digit
from grupo.util.errors import ConfigError


def image_rollout(index):
    """A rollout that generated this handwritten image, in grey."""
    image = (load_digit_images()[0][index] * 255).round().to(torch.uint8).expand(3, 8, 8)
    return Rollout((("?", Response((), (), image=tensor_text.encode_tensor(image))),))


def label_task(index):
    """The task of this handwritten image's digit."""
    return Task("k", DIGIT_NAMES[int(load_digit_images()[1][index])])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("classifier", "first_unseen"), [(linear_classifier, 1), (knn_classifier, 0)]
)
def test_classifiers_recognise_images_outside_of_their_training_set(classifier, first_unseen):
    unseen = range(first_unseen, 200, 2)
    reward = DigitProbability(classifier)
    probabilities = [reward.score(label_task(i), image_rollout(i)) for i in unseen]
    assert sum(p > 0.5 for p in probabilities) >= 0.85 * len(unseen)


def test_probabilities_of_all_digits_add_up_to_one():
    reward, rollout = DigitProbability(linear_classifier), image_rollout(1)
    probabilities = [reward.score(Task("k", name), rollout) for name in DIGIT_NAMES]
    assert sum(probabilities) == pytest.approx(1.0)
    assert max(probabilities) == reward.score(label_task(1), rollout)


def test_there_is_a_task_for_every_digit():
    assert [parse_digit(str(task.prompt)) for task in DigitTasks().load()] == list(range(10))
    with pytest.raises(ConfigError, match="'sevn' names no digit"):
        parse_digit("sevn")


def test_similarity_is_one_minus_the_distance_to_the_nearest_digit():
    score = DigitSimilarity().score
    assert score(label_task(0), image_rollout(0)) == pytest.approx(
        1.0, abs=3e-3
    )  # 8 bits a channel
    image = load_digit_images()[0][0].expand(3, 8, 8).clone()
    image[1] = (image[1] - 0.3).abs()  # one of the three channels is off by 0.3 or less
    encoded = tensor_text.encode_tensor((image * 255).round().to(torch.uint8))
    tinted = Rollout((("?", Response((), (), image=encoded)),))
    off = (image[1] - image[0]).square().mean().item() / 3
    assert score(label_task(0), tinted) == pytest.approx(1 - off**0.5, abs=5e-3)
    assert score(Task("k", "one"), image_rollout(0)) < 0.8
