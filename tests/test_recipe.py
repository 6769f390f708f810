"""What a run chooses: fields changed, and what a step does in words."""

import pytest

from grupo.algo.minibatches import SingleUpdate, Updates
from grupo.config.overrides import apply_overrides
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.schedules import Linear
from grupo.method import Method
from grupo.rollouts.samplers import FirstTurnTree, GroupSampler, ParaphraseSampler
from grupo.toy.quickstart import RECIPE

SMALL = RECIPE.replace(method=Method(sampler=GroupSampler(4)), prompts_per_step=3, max_steps=5)


@component
class Twice:
    """A plan of somebody else's."""

    def __call__(self, batch: Batch, rng):
        yield batch
        yield batch


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {},
            "3 prompts x 4 rollouts = 12 rollouts a step; 1 update a step; 5 steps = 5 updates",
        ),
        (
            {"plan": Updates(2, 3)},
            "3 prompts x 4 rollouts = 12 rollouts a step; 6 updates a step; 5 steps = 30 updates",
        ),
        (
            {"plan": Updates(2, 8)},  # a group stays whole: at most one part for each
            "3 prompts x 4 rollouts = 12 rollouts a step; 6 updates a step; 5 steps = 30 updates",
        ),
        (
            {"sample": FirstTurnTree(2, 3)},
            "3 prompts x 6 rollouts = 18 rollouts a step; 1 update a step; 5 steps = 5 updates",
        ),
        (
            {"sample": ParaphraseSampler(2)},
            "3 prompts, each by ParaphraseSampler(rollouts_per_prompt=2, column='paraphrases'), a step;"
            " 1 update a step; 5 steps = 5 updates",
        ),
        (
            {"plan": Twice()},
            "3 prompts x 4 rollouts = 12 rollouts a step; updates by Twice(); 5 steps",
        ),
    ],
)
def test_what_a_step_does_in_words(changes, words):
    assert SMALL.replace(method=SMALL.method.replace(**changes)).describe_step() == words


def test_one_step_is_one_step():
    assert SMALL.replace(max_steps=1).describe_step().endswith("1 update a step; 1 step = 1 update")


def test_updates_and_group_are_zero_where_nobody_can_say_beforehand():
    assert (SMALL.updates_per_step, SMALL.group_size) == (1, 4)
    other = SMALL.replace(method=Method(sampler=ParaphraseSampler(2), updates=Twice()))
    assert (other.updates_per_step, other.group_size) == (0, 0)


def test_a_recipe_with_some_choices_changed_leaves_the_first_alone():
    assert SMALL.replace(max_steps=7).max_steps == 7
    assert SMALL.max_steps == 5


def test_fields_are_set_in_their_order():
    changed = apply_overrides(SMALL, [("steps", "7"), ("lr", "Linear(1, 0)"), ("steps", "8")])
    assert changed == SMALL.replace(max_steps=8, learning_rate=Linear(1.0, 0.0))


def test_an_unknown_field_is_refused():
    with pytest.raises(ConfigError, match=r"Recipe has no field 'stpes'\. Did you mean 'steps'\?"):
        apply_overrides(SMALL, [("stpes", "7")])


def test_the_default_plan_is_one_pass():
    assert SMALL.method.updates == SingleUpdate()
