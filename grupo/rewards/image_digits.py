"""Handwritten digits, scikit-learn's, and classifiers trained on them on the spot as rewards."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from grupo.core.component import piece
from grupo.core.errors import Refused
from grupo.core.types import Rollout, Task
from grupo.rewards.base import EachRollout
from grupo.rewards.image_shapes import pixels
from grupo.tasks.digit_captions import digit_of


class Classifier(Protocol):
    """Whoever says with which probability an image, a row of pixels, shows each digit."""

    def predict_proba(self, X: Any, /) -> Any: ...


@cache
def handwritten() -> tuple[Float[Tensor, "n 8 8"], Int[Tensor, "n"]]:
    """1,797 images, 0 to 1, and the digits that they show."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise Refused("Digits come with scikit-learn. Install grupo[images].") from error
    found: Any = load_digits()
    return torch.tensor(found.images).float() / 16, torch.tensor(found.target)


@cache
def linear() -> Classifier:
    """Logistic regression, of every second image."""
    from sklearn.linear_model import LogisticRegression

    image, digit = handwritten()
    return LogisticRegression(max_iter=1000).fit(image[::2].flatten(1), digit[::2])


@cache
def neighbours() -> Classifier:
    """The share among the 15 nearest, of the other images."""
    from sklearn.neighbors import KNeighborsClassifier

    image, digit = handwritten()
    return KNeighborsClassifier(15).fit(image[1::2].flatten(1), digit[1::2])


class OfDigits:
    """A reward that reads which digit is named."""

    def admit(self, tasks: Sequence[Task]) -> None:
        """Refuse prompts that name none."""
        for task in tasks:
            digit_of(str(task.prompt))


@piece
class LooksLike(OfDigits, EachRollout):
    """The probability that a picture, its mean over colours, shows the digit that was named."""

    classifier: Callable[[], Classifier] = linear

    def admit(self, tasks: Sequence[Task]) -> None:
        super().admit(tasks)
        self.classifier()  # trained now: judging has a limit of time

    def judge(self, task: Task, rollout: Rollout) -> float:
        row = pixels(rollout).mean(0).flatten()[None]
        return float(self.classifier().predict_proba(row.numpy())[0, digit_of(str(task.prompt))])


@piece
class Handwritten(OfDigits, EachRollout):
    """1 - how far a picture lies, root mean square over pixels and colours, from the nearest digit.

    The nearest of all images of the digit that was named.
    """

    def judge(self, task: Task, rollout: Rollout) -> float:
        image, digit = handwritten()
        own = image[digit == digit_of(str(task.prompt))]
        off = (pixels(rollout) - own[:, None]).square().flatten(1).mean(1)
        return 1 - off.min().sqrt().item()
