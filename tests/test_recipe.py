"""What a run chooses: fields changed, and what a step does in words."""

import pytest

from grupo.algo.minibatches import OnePass, Passes
from grupo.core.batch import Batch
from grupo.core.component import piece
from grupo.core.errors import Refused
from grupo.core.schedules import Linear
from grupo.method import Method
from grupo.rollouts.samplers import Independent, Paraphrased, Tree
from grupo.toy.quickstart import RECIPE

SMALL = RECIPE.but(method=Method(sample=Independent(4)), prompts=3, steps=5)


@piece
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
            {"plan": Passes(2, 3)},
            "3 prompts x 4 rollouts = 12 rollouts a step; 6 updates a step; 5 steps = 30 updates",
        ),
        (
            {"plan": Passes(2, 8)},  # a group stays whole: at most one part for each
            "3 prompts x 4 rollouts = 12 rollouts a step; 6 updates a step; 5 steps = 30 updates",
        ),
        (
            {"sample": Tree(2, 3)},
            "3 prompts x 6 rollouts = 18 rollouts a step; 1 update a step; 5 steps = 5 updates",
        ),
        (
            {"sample": Paraphrased(2)},
            "3 prompts, each by Paraphrased(each=2, column='paraphrases'), a step;"
            " 1 update a step; 5 steps = 5 updates",
        ),
        (
            {"plan": Twice()},
            "3 prompts x 4 rollouts = 12 rollouts a step; updates by Twice(); 5 steps",
        ),
    ],
)
def test_what_a_step_does_in_words(changes, words):
    assert SMALL.but(method=SMALL.method.but(**changes)).geometry() == words


def test_one_step_is_one_step():
    assert SMALL.but(steps=1).geometry().endswith("1 update a step; 1 step = 1 update")


def test_updates_and_group_are_zero_where_nobody_can_say_beforehand():
    assert (SMALL.updates, SMALL.group) == (1, 4)
    other = SMALL.but(method=Method(sample=Paraphrased(2), plan=Twice()))
    assert (other.updates, other.group) == (0, 0)


def test_a_recipe_with_some_choices_changed_leaves_the_first_alone():
    assert SMALL.but(steps=7).steps == 7
    assert SMALL.steps == 5


def test_fields_are_set_in_their_order():
    changed = SMALL.overridden([("steps", "7"), ("lr", "Linear(1, 0)"), ("steps", "8")])
    assert changed == SMALL.but(steps=8, lr=Linear(1.0, 0.0))


def test_an_unknown_field_is_refused():
    with pytest.raises(Refused, match=r"Recipe has no field 'stpes'\. Did you mean 'steps'\?"):
        SMALL.overridden([("stpes", "7")])


def test_the_default_plan_is_one_pass():
    assert SMALL.method.plan == OnePass()
