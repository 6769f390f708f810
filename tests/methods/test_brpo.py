"""BRPO: two thoughts, answered at two budgets."""

import pytest
import torch

from grupo.algo.advantages import chain
from grupo.algo.advantages.budget_relative import BudgetRelativeAdvantage, anytime_advantages
from grupo.algo.aggregation import ConstantLength
from grupo.algo.losses import Clip
from grupo.methods.brpo import brpo
from grupo.rollouts.samplers import AnytimeBudgets
from grupo.testing.batches import make_batch
from grupo.testing.smoke.run import echo_recipe, negate
from grupo.training.learner import Learner

R = torch.tensor([[0.0, 1.0], [1.0, 1.0]], dtype=torch.float64)  # of two thoughts, at two budgets
HALVES = torch.tensor([0.5, 0.5], dtype=torch.float64)
HOME = torch.tensor([0, 0])


def answered(reward, trace, budget, cut=None, group=None, thought=None):
    parts = {"trace": trace, "budget": budget, "cut": budget if cut is None else cut}
    marks = {"step/thought": thought or [[1.0, 0.0]] * len(reward)}
    group = group or [0] * len(reward)
    return make_batch(
        group=group, reward=reward, length=[2] * len(reward), reward_terms=parts, signals=marks
    )


def credited(batch, prior=(1.0, 1.0), answers=1):
    return BudgetRelativeAdvantage(prior, answers)(batch.reward, batch)


def test_early_pieces_lean_on_the_group_and_late_ones_on_their_own_past():
    # s = 0: ret = .5, 1; V2 = .75, and V1 does not count: -.25, .25
    # s = 1: ret = .5, .5; V2 = .5; V1 = 0 x .5, 1 x .5; baselines (0 + .5)/2, (.5 + .5)/2
    assert anytime_advantages(R, HOME, HALVES).tolist() == [[-0.25, 0.25], [0.25, 0.0]]


def test_of_the_past_the_newest_counts_twice_what_the_one_before_does():
    R = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    p = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)
    # s = 2: V1 = (1 x 1 + 2 x 0) / 3 of all that is left, 1; V2 = 0: -(2 x 1/3 + 1 x 0) / 3
    assert anytime_advantages(R, HOME, p)[0].tolist() == pytest.approx([0.0, -1 / 3, -2 / 9])


def test_thoughts_are_credited_by_their_answers_and_answers_by_each_other():
    batch = answered([0.0, 1.0, 1.0, 1.0], [0, 0, 1, 1], [0, 1, 0, 1])
    A = credited(batch)
    assert A[:, 0].tolist() == [-0.25, 0.25, 0.25, 0.0]
    assert A[:, 1].tolist() == [-0.5, 0.0, 0.5, 0.0]  # one to a cut: against those of the budget


def test_answers_of_one_cut_are_compared_with_one_another():
    batch = answered([1.0, 0.0, 1.0, 0.0], [0] * 4, [0] * 4)
    assert credited(batch, (1.0,), answers=4)[:, 1].tolist() == [0.5, -0.5, 0.5, -0.5]


def test_a_thought_that_ended_early_has_one_cut_and_a_score_for_every_budget():
    # both budgets are answered at the first cut: of all four the mean is .5, at each it is .5
    batch = answered([1.0, 0.0, 1.0, 0.0], [0] * 4, [0, 0, 1, 1], cut=[0] * 4)
    assert credited(batch, answers=2)[:, 1].tolist() == [0.5, -0.5, 0.5, -0.5]
    uneven = answered([1.0, 1.0, 1.0, 0.0], [0] * 4, [0, 0, 1, 1], cut=[0] * 4)
    assert credited(uneven, answers=2)[:, 1].tolist() == [0.25, 0.25, 0.25, -0.75]


def test_a_prior_is_of_shares():
    batch = answered([0.0, 1.0, 1.0, 1.0], [0, 0, 1, 1], [0, 1, 0, 1])
    assert torch.equal(credited(batch, (3.0, 3.0)), credited(batch))
    last = credited(batch, (0.0, 1.0))[:, 0]  # ret = 1 everywhere; V1 = 0, 1; V2 = 1
    assert last.tolist() == [0.0, 0.5, 0.0, 0.0]


def test_thoughts_of_another_group_are_others():
    reward, trace, budget = [0.0, 1.0, 1.0, 1.0], [0, 0, 1, 1], [0, 1, 0, 1]
    two = answered(reward + reward[::-1], trace * 2, budget * 2, group=[0] * 4 + [1] * 4)
    assert torch.equal(credited(two)[:4], credited(answered(reward, trace, budget)))


def test_the_defaults_are_the_released_linear_run():
    method = brpo()
    assert method.sampler == AnytimeBudgets(8, (2000, 4000, 6000, 8000), 4, 118)
    assert method.sampler.group_size == 128
    assert method.advantage == BudgetRelativeAdvantage((1.0, 2.0, 3.0, 4.0), 4)
    assert method.loss == Clip(0.2, 0.2)
    # 8000 tokens of thought and 4 x 4 answers of 118 lie in 16 rows: 618 each
    assert method.aggregation == ConstantLength(618)


def trained(credit, steps: int = 30) -> list[float]:
    """Mean rewards of a run in which a digit is thought of, and cut after one token or two."""
    sample = AnytimeBudgets(
        4,
        (1, 2),
        answers_per_budget=2,
        answer_tokens=2,
        cutoff_text="",
        think_end="=",
        answer_header="",
    )
    method = brpo(4, (1, 2), 2, 2, (1.0, 1.0)).replace(sampler=sample)
    method = method.replace(
        advantage=chain(method.advantage, credit) if credit else method.advantage
    )
    learner = Learner(echo_recipe(method, max_steps=steps))
    return [learner.step().metrics["reward/mean"] for _ in range(steps)]


def test_a_run_learns_to_answer_at_every_budget_and_with_the_sign_flipped_it_does_not():
    rises, falls = trained(None), trained(negate)
    assert sum(rises[-5:]) / 5 > rises[0] + 0.2
    assert sum(falls[-5:]) / 5 < falls[0] + 0.05
