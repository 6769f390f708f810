import math

import pytest
import torch

from grupo.evidence.exact import FiniteEnv, FiniteTask
from grupo.util.errors import ConfigError

TREE = ((0,), (1, 0), (1, 1))
TASK = FiniteTask(rewards=(1.0, 0.0, 2.0), probabilities=(0.5, 0.2, 0.3), answers=TREE)
OTHER = FiniteTask(rewards=(0.0, 4.0), probabilities=(0.75, 0.25))
ENV = FiniteEnv((TASK, OTHER))


def test_answers_have_their_probabilities_under_the_sampling_policy():
    expected = [0.5, 0.2, 0.3, 0.75, 0.25]
    assert ENV.answer_logp(ENV.logits).exp().tolist() == pytest.approx(expected, rel=1e-14)


def test_the_expected_reward_is_the_mean_over_tasks():
    # (0.5 + 0.6) / 2 + 1 / 2
    assert ENV.expected_reward(ENV.logits).item() == pytest.approx((1.1 + 1.0) / 2, rel=1e-14)


def test_the_policy_gradient_equals_finite_differences():
    gradient = ENV.policy_gradient(ENV.logits)
    for place in ((0, 0), (1, 1), (2, 0)):
        step = torch.zeros_like(ENV.logits)
        step[place] = 1e-6
        change = ENV.expected_reward(ENV.logits + step) - ENV.expected_reward(ENV.logits - step)
        assert gradient[place].item() == pytest.approx(change.item() / 2e-6, abs=1e-9)
    assert gradient.abs().min() > 0.01


def test_a_row_of_the_table_is_shared_by_the_answers_with_its_beginning():
    assert ENV.table_rows.tolist() == [[0, 0], [0, 1], [0, 1], [2, 0], [2, 0]]
    assert ENV.mask.sum(1).tolist() == [1, 2, 2, 1, 1]


def test_moved_logits_change_by_the_step_along_the_gradient():
    env = FiniteEnv((OTHER,))
    moved = env.moved_logits(0.3)
    assert (moved - env.logits).tolist()[0] == pytest.approx([-0.3, 0.3])
    odds = 0.25 / 0.75 * math.exp(0.6)
    assert env.expected_reward(moved).item() == pytest.approx(4 * odds / (1 + odds))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((1.0, 0.0), (0.5, 0.6)), "probabilities: .*sum to 1"),
        (((1.0, 0.0), (1.0, 0.0)), "probabilities: .*above 0"),
        (((1.0,), (0.5, 0.5)), "not equally many"),
        (((1.0, 0.0), (0.5, 0.5), ((0,), (1, 0))), "is no tree"),
        (((1.0, 0.0, 0.0), (0.5, 0.25, 0.25), ((0,), (1,), (1, 0))), "is no tree"),
    ],
)
def test_a_task_that_is_no_tree_of_answers_is_an_error(arguments, message):
    assert FiniteTask((1.0, 0.0), (0.5, 0.5)).answers == ((0,), (1,))
    with pytest.raises(ConfigError, match=message):
        FiniteTask(*arguments)


@pytest.mark.parametrize("tasks", [(), (OTHER, FiniteTask((1.0,) * 3, (0.5, 0.25, 0.25)))])
def test_tasks_with_different_numbers_of_tokens_are_an_error(tasks):
    with pytest.raises(ConfigError, match=r"tasks: \[.*equally many tokens"):
        FiniteEnv(tasks)
