"""The lock of the recipe of dataset resets, in a few steps."""

import pytest

from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

RECIPE = load_module_file(ROOT / "recipes" / "guidance" / "drpo_reset.py")


def test_the_untrained_table_opens_the_lock_once_in_a_million():
    opened = RECIPE.train(RECIPE.METHODS["DRPO"], seed=0, steps=0)
    assert opened == {"opened": pytest.approx(1e-6), "tokens": 0.0}


def test_grpo_generates_all_digits_and_resets_fewer():
    grpo, drpo = (RECIPE.train(RECIPE.METHODS[name], seed=0, steps=2) for name in ("GRPO", "DRPO"))
    assert grpo["tokens"] == 2 * RECIPE.GROUPS * 8 * 6
    assert grpo["opened"] == pytest.approx(1e-6)  # no rollout had a reward
    assert drpo["tokens"] < grpo["tokens"]


@pytest.mark.slow
def test_the_lock_is_opened_from_its_first_digit_after_resets():
    assert RECIPE.train(RECIPE.METHODS["DRPO"], seed=0)["opened"] > 0.9
