import pytest
import torch

from grupo.core.types import Action, Rollout
from grupo.report.image_grid import save_image_grid, tile_images
from grupo.storage import tensor_text


def rollout(value):
    made = tensor_text.encode_tensor(torch.full((3, 2, 2), value, dtype=torch.uint8))
    return Rollout((("?", Action((), (), image=made)),))


def test_pictures_stand_side_by_side_with_white_between():
    laid = tile_images([[rollout(0), rollout(7)]])
    assert laid.shape == (3, 4, 8)
    white = [255] * 4
    assert laid[0].tolist() == [
        [*white, *white],
        *[[255, 0, 0, 255, 255, 7, 7, 255]] * 2,
        [*white, *white],
    ]


def test_a_grid_is_written_as_it_was_laid(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    save_image_grid([[rollout(0)], [rollout(7)]], tmp_path / "grid.png", scale=2)
    with Image.open(tmp_path / "grid.png") as picture:
        assert picture.size == (8, 16)
        assert picture.getpixel((2, 2)) == (0, 0, 0)
        assert picture.getpixel((2, 10)) == (7, 7, 7)
