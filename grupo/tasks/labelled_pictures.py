"""Labelled pictures as tasks of classification, with labels that can be held out.

CLS-RL, Li et al., 2025, arXiv:2503.16188: few pictures per label, and other labels in evaluation.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from jaxtyping import UInt8

from grupo.core.component import check_field, component
from grupo.core.media import Image
from grupo.core.ranges import NonEmptyString, NonNegativeInt, PositiveInt
from grupo.core.types import Task
from grupo.tasks.base import LazyTasks, task_key
from grupo.tasks.picture_puzzles import centred_square, picture_files, resized, scikit_digits
from grupo.tasks.scenes import noise_pixels, picture_prompt
from grupo.util.errors import ConfigError
from grupo.util.rng import make_rng

DIGIT_LABELS = (
    *("zero", "one", "two", "three", "four"),
    *("five", "six", "seven", "eight", "nine"),
)


class LabelledPictures(Protocol):
    """Square pictures of one size, each with a label: a component."""

    @property
    def labels(self) -> Sequence[str]:
        """The labels."""
        ...

    def count(self, label: str) -> int:
        """The number of pictures with a label."""
        ...

    def picture(self, label: str, index: int) -> UInt8[np.ndarray, "S S 3"]:
        """A picture with a label, by an index from 0 on."""
        ...


@component
class LabelFolders:
    """Picture files in one folder per label, whose name is the label; "_" stands for a space.

    Args:
        path: The folder of these folders.
        size: Pixels along a picture: the largest centred square of a file.
    """

    path: NonEmptyString
    size: PositiveInt = 224

    @property
    def labels(self) -> Sequence[str]:
        """The labels, in alphabetical order."""
        return sorted(self._folders())

    def count(self, label: str) -> int:
        """The number of files in the folder of a label."""
        return len(picture_files(self._folders()[label]))

    def picture(self, label: str, index: int) -> UInt8[np.ndarray, "S S 3"]:
        """A picture of a label, in the order of the files' names."""
        return centred_square(picture_files(self._folders()[label])[index], self.size)

    def _folders(self) -> dict[str, str]:
        root = Path(self.path)
        folders = [f for f in root.iterdir() if f.is_dir()] if root.is_dir() else []
        if not folders:
            raise ConfigError(f"path: {self.path!r}. Allowed: a folder with a folder per label.")
        return {folder.name.replace("_", " "): str(folder) for folder in folders}


@component
class LabelledDigits:
    """Handwritten digits of scikit-learn with their names; every fifth is held out.

    Args:
        size: Pixels along a picture.
        held_out: Whether the held-out pictures are used, in place of the others.
    """

    size: PositiveInt = 32
    held_out: bool = False

    @property
    def labels(self) -> Sequence[str]:
        """The names of the digits from 0 to 9."""
        return DIGIT_LABELS

    def count(self, label: str) -> int:
        """The number of pictures of a digit."""
        return len(self._pictures(label))

    def picture(self, label: str, index: int) -> UInt8[np.ndarray, "S S 3"]:
        """A picture of a digit."""
        return resized(self._pictures(label)[index], self.size)

    def _pictures(self, label: str) -> Sequence[UInt8[np.ndarray, "H W 3"]]:
        return scikit_digits((DIGIT_LABELS.index(label),), self.held_out)


@component
class PictureClassification:
    """Pictures to classify, as often with each label; the answer is the label.

    The prompt lists labels in random order, the right one among them: column `options`.

    Args:
        labelled: The pictures.
        labels: The labels in use, so that others can be held out; () for all.
        choices: Labels in the list of a prompt, the right one included; 0 for all in use.
        shots: Pictures in use per label, the first ones; 0 for all.
        request: Text behind the list, such as the form of the answer.
        size: Number of tasks.
        seed: Seed of pictures and lists.
        blind: Whether noise takes the place of each picture.

    >>> digits = LabelledDigits()
    >>> task = PictureClassification(digits, labels=("one", "two"), request=" Think.").load()[0]
    >>> task.prompt[0]["content"][1]["text"], task.reference_answer
    ('Which is it: one, two? Think.', 'one')
    """

    labelled: LabelledPictures
    labels: tuple[str, ...] = ()
    choices: NonNegativeInt = 0
    shots: NonNegativeInt = 0
    request: str = ""
    size: PositiveInt = 4000
    seed: int = 0
    blind: bool = False

    def __post_init__(self) -> None:
        known = self.labelled.labels
        are_known = set(self.labels) <= set(known)
        check_field(self, "labels", are_known, f"of {', '.join(known)}")
        fits = self.choices != 1 and self.choices <= len(self._labels)
        check_field(self, "choices", fits, f"0, or 2 to {len(self._labels)}, the number of labels")

    @property
    def _labels(self) -> Sequence[str]:
        return self.labels or self.labelled.labels

    def load(self) -> Sequence[Task]:
        return LazyTasks(self.size, self._task)

    def _task(self, index: int) -> Task:
        rng = make_rng(self.seed, "labelled picture", index)
        label = self._labels[index % len(self._labels)]
        others = [other for other in self._labels if other != label]
        options = [label, *rng.sample(others, (self.choices or len(self._labels)) - 1)]
        rng.shuffle(options)
        count = self.labelled.count(label)
        pixels = self.labelled.picture(label, rng.randrange(min(count, self.shots or count)))
        if self.blind:
            pixels = noise_pixels(rng, pixels.shape)
        text = f"Which is it: {', '.join(options)}?{self.request}"
        prompt = picture_prompt([Image.from_pixels(pixels)], text)
        return Task(task_key(prompt), prompt, label, "labelled pictures", {"options": options})
