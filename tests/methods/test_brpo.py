"""BRPO: two thinking traces, answered at two budgets."""

import pytest
import torch

from grupo.algo.advantages import chain
from grupo.algo.advantages.budget_relative import BudgetRelativeAdvantage, anytime_advantages
from grupo.algo.aggregation import ConstantLength
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.methods.brpo import brpo
from grupo.rollouts.samplers import AnytimeBudgets
from grupo.testing.batches import make_batch
from grupo.testing.smoke.run import echo_recipe, negate
from grupo.training.learner import Learner

R = torch.tensor([[0.0, 1.0], [1.0, 1.0]], dtype=torch.float64)  # two traces, two budgets
HALVES = torch.tensor([0.5, 0.5], dtype=torch.float64)
GROUP = torch.tensor([0, 0])


def batch_of_answers(reward, trace, budget, cut=None, group=None):
    cut = budget if cut is None else cut
    terms = {"trace_index": trace, "budget_index": budget, "cut_index": cut}
    signals = {"step/thinking": [[1.0, 0.0]] * len(reward)}
    group = group or [0] * len(reward)
    return make_batch(
        group=group, reward=reward, length=[2] * len(reward), reward_terms=terms, signals=signals
    )


def advantage_of(batch, prior=(1.0, 1.0), answers=1):
    return BudgetRelativeAdvantage(prior, answers)(batch.reward, batch)


def test_early_segments_use_the_group_baseline_and_late_ones_the_trace_baseline():
    # s = 0: ret = .5, 1; V2 = .75, and V1 does not count: -.25, .25
    # s = 1: ret = .5, .5; V2 = .5; V1 = 0 x .5, 1 x .5; baselines (0 + .5)/2, (.5 + .5)/2
    assert anytime_advantages(R, GROUP, HALVES).tolist() == [[-0.25, 0.25], [0.25, 0.0]]


def test_trace_baseline_doubles_the_weight_at_each_later_budget():
    R = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    p = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)
    # s = 2: V1 = (1 x 1 + 2 x 0) / 3 of all that is left, 1; V2 = 0: -(2 x 1/3 + 1 x 0) / 3
    assert anytime_advantages(R, GROUP, p)[0].tolist() == pytest.approx([0.0, -1 / 3, -2 / 9])


def test_thinking_is_compared_by_its_answers_and_answers_with_each_other():
    batch = batch_of_answers([0.0, 1.0, 1.0, 1.0], [0, 0, 1, 1], [0, 1, 0, 1])
    A = advantage_of(batch)
    assert A[:, 0].tolist() == [-0.25, 0.25, 0.25, 0.0]
    assert A[:, 1].tolist() == [-0.5, 0.0, 0.5, 0.0]  # one answer per cut: compared over the budget


def test_answers_of_one_cut_are_compared_with_one_another():
    batch = batch_of_answers([1.0, 0.0, 1.0, 0.0], [0] * 4, [0] * 4)
    assert advantage_of(batch, (1.0,), answers=4)[:, 1].tolist() == [0.5, -0.5, 0.5, -0.5]


def test_trace_that_ended_early_has_one_cut_and_an_answer_per_budget():
    # both budgets are answered at the first cut: of all four the mean is .5, at each it is .5
    batch = batch_of_answers([1.0, 0.0, 1.0, 0.0], [0] * 4, [0, 0, 1, 1], cut=[0] * 4)
    assert advantage_of(batch, answers=2)[:, 1].tolist() == [0.5, -0.5, 0.5, -0.5]
    uneven = batch_of_answers([1.0, 1.0, 1.0, 0.0], [0] * 4, [0, 0, 1, 1], cut=[0] * 4)
    assert advantage_of(uneven, answers=2)[:, 1].tolist() == [0.25, 0.25, 0.25, -0.75]


def test_prior_is_normalised():
    batch = batch_of_answers([0.0, 1.0, 1.0, 1.0], [0, 0, 1, 1], [0, 1, 0, 1])
    assert torch.equal(advantage_of(batch, (3.0, 3.0)), advantage_of(batch))
    last = advantage_of(batch, (0.0, 1.0))[:, 0]  # ret = 1 everywhere; V1 = 0, 1; V2 = 1
    assert last.tolist() == [0.0, 0.5, 0.0, 0.0]


def test_traces_of_other_groups_are_separate():
    reward, trace, budget = [0.0, 1.0, 1.0, 1.0], [0, 0, 1, 1], [0, 1, 0, 1]
    two = batch_of_answers(reward + reward[::-1], trace * 2, budget * 2, group=[0] * 4 + [1] * 4)
    assert torch.equal(advantage_of(two)[:4], advantage_of(batch_of_answers(reward, trace, budget)))


def test_defaults_are_the_released_linear_run():
    method = brpo()
    assert method.sampler == AnytimeBudgets(8, (2000, 4000, 6000, 8000), 4, 118)
    assert method.sampler.group_size == 128
    assert method.advantage == BudgetRelativeAdvantage((1.0, 2.0, 3.0, 4.0), 4)
    assert method.loss == Clip(0.2, 0.2)
    # 8000 thinking tokens and 4 x 4 answers of 118 are in 16 rows: 618 each
    assert method.aggregation == ConstantLength(618)


def training_rewards(estimator, steps: int = 30) -> list[float]:
    """Mean reward of each step of a run whose thinking is cut after one token or two."""
    sampler = AnytimeBudgets(
        4,
        (1, 2),
        answers_per_budget=2,
        answer_tokens=2,
        cutoff_text="",
        think_end="=",
        answer_header="",
    )
    method = brpo(4, (1, 2), 2, 2, (1.0, 1.0)).replace(sampler=sampler)
    if estimator:
        method = method.replace(advantage=chain(method.advantage, estimator))
    recipe = echo_recipe(method, max_steps=steps).replace(method=method)  # it fits Echo as it is
    learner = Learner(recipe)
    return [learner.step().metrics["reward/mean"] for _ in range(steps)]


@pytest.mark.slow
def test_training_raises_the_reward_and_with_flipped_sign_does_not():
    rises, falls = training_rewards(None), training_rewards(negate)
    assert sum(rises[-5:]) / 5 > rises[0] + 0.2
    assert sum(falls[-5:]) / 5 < falls[0] + 0.05


def test_update_plan_is_the_released_one():
    assert brpo().updates == Updates(minibatches=2)
