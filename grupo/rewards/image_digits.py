"""Rewards for images of digits, from classifiers trained on scikit-learn's handwritten digits."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from grupo.core.component import component
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward
from grupo.rewards.image_shapes import rollout_image
from grupo.tasks.digit_captions import parse_digit
from grupo.util.errors import ConfigError


class Classifier(Protocol):
    """Returns, for each row of pixels, the probability of each digit."""

    def predict_proba(self, X: Any, /) -> Any: ...


@cache
def load_digit_images() -> tuple[Float[Tensor, "n 8 8"], Int[Tensor, "n"]]:
    """scikit-learn's 1,797 images of digits, with pixels from 0 to 1, and their labels."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ConfigError("Digits come with scikit-learn. Install grupo[images].") from error
    dataset: Any = load_digits()
    return torch.tensor(dataset.images).float() / 16, torch.tensor(dataset.target)


@cache
def linear_classifier() -> Classifier:
    """Logistic regression, trained on the images of even index."""
    from sklearn.linear_model import LogisticRegression

    image, digit = load_digit_images()
    return LogisticRegression(max_iter=1000).fit(image[::2].flatten(1), digit[::2])


@cache
def knn_classifier() -> Classifier:
    """15 nearest neighbours, among the images of odd index."""
    from sklearn.neighbors import KNeighborsClassifier

    image, digit = load_digit_images()
    return KNeighborsClassifier(15).fit(image[1::2].flatten(1), digit[1::2])


class DigitReward:
    """Base class of rewards whose prompts name a digit."""

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raises `ConfigError` if a prompt names no digit."""
        for task in tasks:
            parse_digit(str(task.prompt))


@component
class DigitProbability(DigitReward, PerRolloutReward):
    """The classifier's probability of the named digit, for the image averaged over colours.

    Args:
        classifier: Trains and caches a classifier.
    """

    classifier: Callable[[], Classifier] = linear_classifier

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        super().validate_tasks(tasks)
        self.classifier()  # trained here, because scoring has a time limit

    def score(self, task: Task, rollout: Rollout) -> float:
        row = rollout_image(rollout).mean(0).flatten()[None]
        return float(self.classifier().predict_proba(row.numpy())[0, parse_digit(str(task.prompt))])


@component
class DigitSimilarity(DigitReward, PerRolloutReward):
    """1 - the root mean square distance to the nearest handwritten image of the named digit.

    The mean is over pixels and colours.
    """

    def score(self, task: Task, rollout: Rollout) -> float:
        image, digit = load_digit_images()
        candidates = image[digit == parse_digit(str(task.prompt))]
        distance = (rollout_image(rollout) - candidates[:, None]).square().flatten(1).mean(1)
        return 1 - distance.min().sqrt().item()
