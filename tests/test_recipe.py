"""Recipes: overrides of fields, and the description of a step."""

import pytest

from grupo.algo.minibatches import SingleUpdate, Updates
from grupo.config.overrides import apply_overrides
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.schedules import Linear
from grupo.method import Method
from grupo.rollouts.samplers import FirstTurnTree, GroupSampler, ParaphraseSampler
from grupo.toy.quickstart import RECIPE
from grupo.util.errors import ConfigError

SMALL = RECIPE.replace(method=Method(sampler=GroupSampler(4)), prompts_per_step=3, max_steps=5)


@component
class Twice:
    """An update plan of another package."""

    def __call__(self, batch: Batch, rng):
        yield batch
        yield batch


@pytest.mark.parametrize(
    ("changes", "description"),
    [
        (
            {},
            "3 prompts x 4 rollouts = 12 rollouts per step; 1 update per step; 5 steps = 5 updates",
        ),
        (
            {"updates": Updates(2, 3)},
            "3 prompts x 4 rollouts = 12 rollouts per step; 6 updates per step;"
            " 5 steps = 30 updates",
        ),
        (
            {"sampler": FirstTurnTree(2, 3)},
            "3 prompts x 6 rollouts = 18 rollouts per step; 1 update per step; 5 steps = 5 updates",
        ),
        (
            {"sampler": ParaphraseSampler(2)},
            "3 prompts per step, each sampled by"
            " ParaphraseSampler(rollouts_per_prompt=2, column='paraphrases'); 1 update per step;"
            " 5 steps = 5 updates",
        ),
        (
            {"updates": Twice()},
            "3 prompts x 4 rollouts = 12 rollouts per step; updates by Twice(); 5 steps",
        ),
    ],
)
def test_a_step_is_described_in_words(changes, description):
    assert SMALL.replace(method=SMALL.method.replace(**changes)).describe_step() == description


def test_one_step_is_singular():
    assert (
        SMALL.replace(max_steps=1).describe_step().endswith("1 update per step; 1 step = 1 update")
    )


def test_updates_and_group_size_are_zero_if_not_fixed_in_advance():
    assert (SMALL.updates_per_step, SMALL.group_size) == (1, 4)
    other = SMALL.replace(method=Method(sampler=ParaphraseSampler(2), updates=Twice()))
    assert (other.updates_per_step, other.group_size) == (0, 0)


def test_replace_leaves_the_recipe_unchanged():
    assert SMALL.replace(max_steps=7).max_steps == 7
    assert SMALL.max_steps == 5


def test_overrides_are_applied_in_order():
    changed = apply_overrides(
        SMALL, [("max_steps", "7"), ("learning_rate", "Linear(1, 0)"), ("max_steps", "8")]
    )
    assert changed == SMALL.replace(max_steps=8, learning_rate=Linear(1.0, 0.0))


def test_unknown_field_is_rejected():
    with pytest.raises(
        ConfigError, match=r"Recipe has no field 'max_stpes'\. Did you mean 'max_steps'\?"
    ):
        apply_overrides(SMALL, [("max_stpes", "7")])


def test_default_is_a_single_update():
    assert SMALL.method.updates == SingleUpdate()
