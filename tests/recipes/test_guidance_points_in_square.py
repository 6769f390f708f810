"""Nine points in a square: the toy mutator, the upper bound, and the page's tables."""

import random

from grupo.evidence.claims.stored_runs import stored_runs
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

RECIPE = load_module_file(ROOT / "recipes" / "guidance" / "points_in_square.py")
PARENT = [[i / 10, i / 10] for i in range(9)]
OTHER = [[i / 10, 1 - i / 10] for i in range(9)]


def test_an_edit_changes_one_point_of_the_last_parent():
    for seed in range(50):
        child = RECIPE.edited([OTHER, PARENT], random.Random(seed))
        assert sum(a != b for a, b in zip(child, PARENT, strict=True)) <= 1
        assert all(0 <= x <= 1 for point in child for x in point)


def test_some_edits_take_a_point_of_the_other_parent():
    children = [RECIPE.edited([OTHER, PARENT], random.Random(seed)) for seed in range(50)]
    taken = [i for child in children for i in range(1, 9) if child[i] == OTHER[i]]
    assert len(taken) > 5


def test_the_upper_bound_is_the_grid_of_three_by_three():
    assert RECIPE.ARMS[RECIPE.BOUND](100, steps=1)["best"] == 0.5


def test_the_winner_of_a_longer_search_is_at_least_as_good_and_arms_differ():
    found = {
        name: [RECIPE.ARMS[name](100, steps=steps) for steps in (3, 9)]
        for name in (RECIPE.BASELINE, RECIPE.BEST_ONLY, RECIPE.ELITES)
    }
    for short, long in found.values():
        assert 0 < short["best"] <= long["best"] <= 0.5
        assert short["coverage"] <= long["coverage"]
    assert len({runs[1]["best"] for runs in found.values()}) == 3


def test_the_tables_of_the_page_are_those_of_the_runs():
    folder = ROOT / "docs" / "guidance_shown"
    runs = stored_runs(folder / "points_in_square.jsonl", dict.fromkeys(RECIPE.ARMS), range(16))
    page = (folder / "points_in_square.md").read_text().splitlines()
    for table in RECIPE.tables(runs):
        assert set(table.splitlines()) <= set(page)
