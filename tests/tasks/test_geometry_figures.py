"""Figures are drawn with the areas that are asked for, and lines lead to parts of them."""

from random import Random

import pytest

from grupo.core.media import Image, media_of
from grupo.tasks.geometry_figures import SHAPES, Figure, FigureAreas, draw_figure, random_figure
from grupo.util.errors import ConfigError

CELL = 20  # pixels, so that edges hardly count


def figures(shape):
    return [random_figure(shape, 4, Random(seed)) for seed in range(20)]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_drawn_area_is_the_area(shape):
    pytest.importorskip("PIL")
    for figure in figures(shape):
        picture = draw_figure(figure, Random(0), cells=4, cell=CELL)
        lit = int((picture[..., 0] > 100).sum())
        assert lit / CELL**2 == pytest.approx(figure.area, abs=0.8)


def test_areas_by_hand():
    assert Figure("rectangle", 3, 2).area == 6
    assert Figure("triangle", 3, 2).area == 3
    assert Figure("corner", 4, 3, cut=(2, 1)).area == 12 - 2


def test_a_line_cuts_a_corner_into_two_rectangles():
    # the left 2 x 3 cells, and the right 2 x 2 cells below what is missing
    assert Figure("corner", 4, 3, cut=(2, 1)).parts == (6, 4)


def test_a_line_cuts_a_rectangle_in_the_middle():
    assert Figure("rectangle", 3, 2).parts == (2, 4)


def test_a_triangle_is_completed_to_a_rectangle():
    assert Figure("triangle", 4, 3).parts == (12, 6)


@pytest.mark.parametrize("shape", ["rectangle", "corner"])
def test_parts_add_up_to_the_area(shape):
    assert all(sum(figure.parts) == figure.area for figure in figures(shape))


def test_figures_of_all_shapes_take_turns():
    tasks = FigureAreas(size=6).load()
    assert [task.columns["shape"] for task in tasks] == [*SHAPES, *SHAPES]
    assert FigureAreas(("triangle",), size=2).load()[1].columns["shape"] == "triangle"


def test_blind_tasks_have_noise_and_the_same_answers():
    seen, blind = (FigureAreas(size=6, blind=b).load() for b in (False, True))
    assert [task.reference_answer for task in seen] == [task.reference_answer for task in blind]
    (picture,) = (m.pixels() for m in media_of(blind[0].prompt) if isinstance(m, Image))
    assert picture.shape == (32, 32, 3)
    assert len(set(picture[0, :, 0].tolist())) > 10


@pytest.mark.parametrize("settings", [{"shapes": ("circle",)}, {"shapes": ()}, {"cells": 1}])
def test_unknown_shapes_and_too_few_cells_are_refused(settings):
    with pytest.raises(ConfigError, match=r"shapes|cells"):
        FigureAreas(**settings)
