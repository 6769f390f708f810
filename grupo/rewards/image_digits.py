"""Handwritten digits, scikit-learn's, and classifiers trained on them on the spot as rewards."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward
from grupo.rewards.image_shapes import rollout_image
from grupo.tasks.digit_captions import parse_digit


class Classifier(Protocol):
    """Whoever says with which probability an image, a row of pixels, shows each digit."""

    def predict_proba(self, X: Any, /) -> Any: ...


@cache
def load_digit_images() -> tuple[Float[Tensor, "n 8 8"], Int[Tensor, "n"]]:
    """1,797 images, 0 to 1, and the digits that they show."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ConfigError("Digits come with scikit-learn. Install grupo[images].") from error
    found: Any = load_digits()
    return torch.tensor(found.images).float() / 16, torch.tensor(found.target)


@cache
def linear_classifier() -> Classifier:
    """Logistic regression, of every second image."""
    from sklearn.linear_model import LogisticRegression

    image, digit = load_digit_images()
    return LogisticRegression(max_iter=1000).fit(image[::2].flatten(1), digit[::2])


@cache
def knn_classifier() -> Classifier:
    """The share among the 15 nearest, of the other images."""
    from sklearn.neighbors import KNeighborsClassifier

    image, digit = load_digit_images()
    return KNeighborsClassifier(15).fit(image[1::2].flatten(1), digit[1::2])


class DigitReward:
    """A reward that reads which digit is named."""

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Refuse prompts that name none."""
        for task in tasks:
            parse_digit(str(task.prompt))


@component
class DigitProbability(DigitReward, PerRolloutReward):
    """The probability that a picture, its mean over colours, shows the digit that was named."""

    classifier: Callable[[], Classifier] = linear_classifier

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        super().validate_tasks(tasks)
        self.classifier()  # trained now: judging has a limit of time

    def score(self, task: Task, rollout: Rollout) -> float:
        row = rollout_image(rollout).mean(0).flatten()[None]
        return float(self.classifier().predict_proba(row.numpy())[0, parse_digit(str(task.prompt))])


@component
class DigitSimilarity(DigitReward, PerRolloutReward):
    """1 - how far a picture lies, root mean square over pixels and colours, from the nearest digit.

    The nearest of all images of the digit that was named.
    """

    def score(self, task: Task, rollout: Rollout) -> float:
        image, digit = load_digit_images()
        own = image[digit == parse_digit(str(task.prompt))]
        off = (rollout_image(rollout) - own[:, None]).square().flatten(1).mean(1)
        return 1 - off.min().sqrt().item()
