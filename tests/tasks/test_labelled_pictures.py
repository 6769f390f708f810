"""Labelled pictures become tasks of classification: balanced, with held-out labels, few shots."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from grupo.core.component import component
from grupo.core.media import Image, media_of
from grupo.tasks.labelled_pictures import LabelFolders, PictureClassification
from grupo.util.errors import ConfigError


@component
class Grey:
    """Pictures of one grey each: 10 per label, of other greys for other labels."""

    labels: tuple[str, ...] = ("cat", "dog", "cow")

    def count(self, label: str) -> int:
        return 10

    def picture(self, label: str, index: int) -> np.ndarray:
        return np.full((4, 4, 3), 10 * self.labels.index(label) + index, np.uint8)


def grey_of(task) -> int:
    (picture,) = (media.pixels() for media in media_of(task.prompt) if isinstance(media, Image))
    return int(picture[0, 0, 0])


def test_the_answer_is_the_label_of_the_picture_and_labels_are_balanced():
    tasks = PictureClassification(Grey(), size=30).load()
    assert all(Grey().labels[grey_of(task) // 10] == task.reference_answer for task in tasks)
    assert Counter(str(task.reference_answer) for task in tasks) == dict.fromkeys(Grey().labels, 10)


def test_prompts_list_the_right_label_among_those_in_use():
    tasks = PictureClassification(Grey(), labels=("cat", "cow"), request=" Look.", size=8).load()
    for task in tasks:
        options = task.columns["options"]
        assert sorted(options) == ["cat", "cow"]
        assert task.reference_answer in options
        messages: Any = task.prompt
        assert messages[0]["content"][1]["text"] == f"Which is it: {', '.join(options)}? Look."
    assert len({task.columns["options"][0] for task in tasks}) == 2


def test_a_prompt_lists_as_many_labels_as_there_are_choices():
    tasks = PictureClassification(Grey(), choices=2, size=30).load()
    assert {len(task.columns["options"]) for task in tasks} == {2}


def test_shots_are_the_first_pictures_of_each_label():
    tasks = PictureClassification(Grey(), shots=2, size=60).load()
    assert {grey_of(task) % 10 for task in tasks} == {0, 1}


def test_blind_tasks_have_noise_and_the_same_answers():
    seen, blind = (PictureClassification(Grey(), size=6, blind=b).load() for b in (False, True))
    assert [task.reference_answer for task in seen] == [task.reference_answer for task in blind]
    (picture,) = (m.pixels() for m in media_of(blind[0].prompt) if isinstance(m, Image))
    assert picture.std() > 30


@pytest.mark.parametrize("settings", [{"labels": ("bat",)}, {"choices": 1}, {"choices": 4}])
def test_unknown_labels_and_impossible_choices_are_refused(settings):
    with pytest.raises(ConfigError, match=r"labels|choices"):
        PictureClassification(Grey(), **settings)


def test_folders_are_labels(tmp_path):
    pillow = pytest.importorskip("PIL.Image")
    for label, grey in (("red_fox", 50), ("owl", 200)):
        (tmp_path / label).mkdir()
        pillow.new("RGB", (6, 4), (grey,) * 3).save(tmp_path / label / "a.png")
    pictures = LabelFolders(str(tmp_path), size=4)
    assert pictures.labels == ["owl", "red fox"]
    assert [pictures.count(label) for label in pictures.labels] == [1, 1]
    assert pictures.picture("red fox", 0).shape == (4, 4, 3)
    assert pictures.picture("owl", 0).mean() == 200


def test_a_folder_without_labels_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="a folder per label"):
        PictureClassification(LabelFolders(str(tmp_path)))
