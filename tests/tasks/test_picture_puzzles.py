"""Puzzles are solved by undoing what was done to the picture, and their answers are balanced."""

from collections import Counter
from random import Random

import numpy as np
import pytest

from grupo.core.component import component
from grupo.core.media import Image, media_of
from grupo.tasks.picture_puzzles import (
    HOLE,
    DigitPictures,
    FolderPictures,
    JigsawPuzzles,
    PatchPuzzles,
    RotationPuzzles,
    resized,
    shuffled,
    turned,
)
from grupo.util.errors import ConfigError


@component
class Ramps:
    """Pictures of which every pixel is different: it grows by 1 in reading order."""

    size: int = 12

    def draw(self, rng: Random) -> np.ndarray:
        ramp = np.arange(self.size**2).reshape(self.size, self.size) + rng.randrange(100)
        return np.stack([ramp, ramp, 255 - ramp], axis=-1).astype(np.uint8)


def pictures_of(task) -> list[np.ndarray]:
    return [media.pixels() for media in media_of(task.prompt) if isinstance(media, Image)]


def upright(task) -> bool:
    """Whether turning back by the answer gives a picture whose first row comes first."""
    (picture,) = pictures_of(task)
    back = turned(picture, 360 - int(str(task.reference_answer)))
    return bool(back[0, 1, 0] - back[0, 0, 0] == 1)


def test_turning_back_by_the_answer_gives_the_upright_picture():
    tasks = RotationPuzzles(Ramps(), size=8).load()
    assert all(map(upright, tasks))
    assert Counter(str(task.reference_answer) for task in tasks) == dict.fromkeys(
        ("0", "90", "180", "270"), 2
    )


def test_placing_the_tiles_by_the_answer_gives_the_picture():
    for task in JigsawPuzzles(Ramps(), size=6).load():
        (picture,) = pictures_of(task)
        order = list(map(int, str(task.reference_answer).split()))
        inverse = sorted(range(4), key=order.__getitem__)
        solved = shuffled(picture, inverse)
        assert solved[0, 1, 0] - solved[0, 0, 0] == 1
        assert (np.diff(solved[:, :, 0].astype(int).ravel()) == 1).all()


def test_the_right_patch_fills_the_hole():
    for i, task in enumerate(PatchPuzzles(Ramps(), size=8, hole_frac=0.25).load()):
        holed, *patches = pictures_of(task)
        assert len(patches) == 4
        assert str(task.reference_answer) == "ABCD"[i % 4]
        hole, number = (holed == HOLE).all(2), np.arange(144).reshape(12, 12)
        assert hole.sum() == 9
        (offset,) = np.unique(holed[~hole, 0] - number[~hole])
        value = int(offset + number[hole][0])
        differences = [abs(int(patch[0, 0, 0]) - value) for patch in patches]
        assert min(differences) == differences["ABCD".index(str(task.reference_answer))] <= 4


def test_holes_of_half_a_side_leave_three_other_patches():
    tasks = PatchPuzzles(Ramps(), size=20, hole_frac=0.5).load()
    assert {len(pictures_of(task)) for task in tasks} == {5}


def test_blind_puzzles_have_the_same_answers_and_other_pictures():
    seen, blind = (RotationPuzzles(Ramps(), size=4, blind=flag).load() for flag in (False, True))
    assert [t.reference_answer for t in seen] == [t.reference_answer for t in blind]
    assert not np.array_equal(pictures_of(seen[0])[0], pictures_of(blind[0])[0])


def test_no_digit_is_both_seen_and_held_out():
    pytest.importorskip("sklearn")
    rng = Random(0)
    seen, held_out = (
        {DigitPictures(held_out=flag).draw(rng).tobytes() for _ in range(300)}
        for flag in (False, True)
    )
    assert len(seen) > len(held_out) > 80
    assert not seen & held_out


def test_pictures_of_a_folder_are_its_centred_squares(tmp_path):
    wide = np.zeros((4, 8, 3), np.uint8)
    wide[:, 2:6] = 200
    (tmp_path / "a.png").write_bytes(Image.from_pixels(wide).data)
    picture = FolderPictures(str(tmp_path), size=8).draw(Random(0))
    assert (picture == 200).all()
    assert resized(wide[:, 2:6], 2).shape == (2, 2, 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FolderPictures("/nonexistent").draw(Random(0)), "path: '/nonexistent'"),
        (lambda: JigsawPuzzles(Ramps(), side=5), "side: 5. Allowed: a divisor"),
        (lambda: PatchPuzzles(Ramps(), choices=9), "choices: 9"),
        (lambda: PatchPuzzles(Ramps(), hole_frac=0.6), "hole_frac: 0.6"),
        (lambda: DigitPictures((3, 10)), "digits: (3, 10)"),
        (lambda: PatchPuzzles(Ramps(2), choices=8, hole_frac=0.5).load()[0], "choices: 8"),
    ],
)
def test_impossible_puzzles_are_refused(make, message):
    with pytest.raises(ConfigError) as error:
        make()
    assert message in str(error.value)
