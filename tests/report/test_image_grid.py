"""Image grids as PNG."""

import pytest
import torch

from grupo.core.types import Response, Rollout
from grupo.report.image_grid import save_image_grid, tile_images
from grupo.storage import tensor_text


def rollout(value):
    image = tensor_text.encode_tensor(torch.full((3, 2, 2), value, dtype=torch.uint8))
    return Rollout((("?", Response((), (), image=image)),))


def test_images_are_tiled_with_white_borders():
    grid = tile_images([[rollout(0), rollout(7)]])
    assert grid.shape == (3, 4, 8)
    white = [255] * 4
    assert grid[0].tolist() == [
        [*white, *white],
        *[[255, 0, 0, 255, 255, 7, 7, 255]] * 2,
        [*white, *white],
    ]


def test_grid_is_saved_as_png(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    save_image_grid([[rollout(0)], [rollout(7)]], tmp_path / "grid.png", scale=2)
    with Image.open(tmp_path / "grid.png") as image:
        assert image.size == (8, 16)
        assert image.getpixel((2, 2)) == (0, 0, 0)
        assert image.getpixel((2, 10)) == (7, 7, 7)
