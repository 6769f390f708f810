from dataclasses import replace
from itertools import product

import pytest

from grupo.algo.filters import KeepBest, KeepMaxVariance, keep_all, keep_nonzero_std
from grupo.evidence.exact import FiniteEnv, FiniteTask
from grupo.evidence.exact.enumeration import group_outcomes, ordered_group_outcomes, step_outcomes
from grupo.evidence.exact.standard import LENGTHS, two_answers
from grupo.util.errors import ConfigError

ENV = FiniteEnv((two_answers(0.25), two_answers(0.5)))
THREE = FiniteEnv((FiniteTask((0.0, 1.0, 1.0), (0.5, 0.3, 0.2)),))


def reward(rollout):
    return rollout.reward


def keep_first(groups):
    return [replace(group, rollouts=group.rollouts[:1]) for group in groups]


def test_groups_have_multinomial_probabilities():
    outcomes = group_outcomes(ENV, 0, 2, keep_all)
    assert dict(outcomes) == {(0, 0): 1 / 16, (0, 1): 6 / 16, (1, 1): 9 / 16}


def test_answers_are_numbered_over_all_tasks():
    assert set(group_outcomes(ENV, 1, 1, keep_all)) == {(2,), (3,)}


@pytest.mark.parametrize(
    ("env", "group_size", "group_filter"),
    [
        (THREE, 4, keep_all),
        (THREE, 5, keep_nonzero_std),
        (THREE, 4, KeepBest(2, reward)),
        (LENGTHS, 4, KeepMaxVariance(2)),
        (LENGTHS, 4, keep_first),
    ],
)
def test_listing_groups_without_order_equals_listing_all_sequences(env, group_size, group_filter):
    outcomes = group_outcomes(env, 0, group_size, group_filter)
    assert outcomes == pytest.approx(
        dict(ordered_group_outcomes(env, 0, group_size, group_filter)), rel=1e-12
    )
    assert sum(outcomes.values()) == pytest.approx(1)


def test_a_filter_that_chooses_by_position_sees_all_orders():
    # a list of groups in rising order only would keep answer 0 too often
    assert group_outcomes(THREE, 0, 3, keep_first) == pytest.approx(
        {(0,): 0.5, (1,): 0.3, (2,): 0.2}
    )


def test_a_step_has_a_group_of_each_task_and_lacks_dropped_ones():
    outcomes = step_outcomes(ENV, 2, keep_nonzero_std)
    informative = 6 / 16, 1 / 2
    assert outcomes == pytest.approx(
        {
            ((0, 1), (2, 3)): informative[0] * informative[1],
            ((0, 1),): informative[0] / 2,
            ((2, 3),): 10 / 16 * informative[1],
            (): 10 / 16 / 2,
        }
    )


def test_steps_are_the_product_of_the_groups_of_all_tasks():
    outcomes = step_outcomes(ENV, 1, keep_all)
    probability = (0.25, 0.75)
    assert outcomes == {((a,), (b,)): probability[a] * 0.5 for a, b in product((0, 1), (2, 3))}


def test_too_many_steps_are_an_error_before_they_are_listed():
    with pytest.raises(ConfigError, match="group_size: 500 rollouts make 251001 different steps"):
        step_outcomes(ENV, 500, keep_all)
