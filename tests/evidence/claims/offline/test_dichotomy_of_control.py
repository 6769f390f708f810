"""Dichotomy of Control on the gambling bandit, and the value of its bound by hand."""

from math import log

import pytest
import torch

from grupo.evidence.claims.offline.dichotomy_of_control import ControlTables, fit_control
from grupo.evidence.claims.offline.outcomes import gambling_bandit
from grupo.evidence.claims.offline.return_conditioned import return_conditioned_policy

SURE, GAMBLE = 0, 1
SEEDS = range(10)


def test_the_log_has_both_arms_and_three_payments():
    shares = gambling_bandit(0, 100_000).frequencies()
    expected = torch.tensor([[[0.0, 0.5, 0.0], [0.25, 0.0, 0.25]]], dtype=torch.float64)
    assert torch.allclose(shares, expected, atol=0.01)
    assert gambling_bandit(0).values.tolist() == [-15.0, 5.0, 15.0]


def test_losses_by_hand():
    log_ = gambling_bandit(0)
    tables = ControlTables(log_, num_latents=2)
    shares = torch.tensor([[[0.0, 0.5, 0.0], [0.25, 0.0, 0.25]]], dtype=torch.float64)
    with torch.no_grad():
        for table in tables.parameters():
            table.zero_()
        # a lost gamble has latent 0, a won one latent 1; the sure arm has both
        tables.posterior[0, GAMBLE] = torch.tensor([[99.0, 0.0], [0.0, 0.0], [0.0, 99.0]])
        losses = tables.losses(shares)
        assert losses.cloning == pytest.approx(log(2))  # a uniform policy
        assert losses.value == pytest.approx(log(3))  # a uniform value of three outcomes
        assert losses.information == pytest.approx(0.0)  # a constant energy
        tables.energy[0, GAMBLE] = torch.tensor([[99.0, 0.0], [0.0, 0.0], [0.0, 99.0]])
        # f is log p(o | z) + const: the bound is I(o; z | s, a) = log 2, in half of the data
        assert tables.losses(shares).information == pytest.approx(log(2) / 2)


def test_return_conditioned_cloning_by_hand():
    shares = return_conditioned_policy(gambling_bandit(0), 15.0)
    assert shares.tolist() == [[0.0, 1.0]]
    assert return_conditioned_policy(gambling_bandit(0), 5.0).tolist() == [[1.0, 0.0]]
    assert return_conditioned_policy(gambling_bandit(0), 7.0).tolist() == [[0.5, 0.5]]


def choice(seed: int) -> int:
    """The arm that the policy prefers."""
    log_ = gambling_bandit(seed)
    tables = fit_control(ControlTables(log_, seed=seed), log_)
    return int(tables.best_policy(log_)[0].argmax())


@pytest.mark.slow
def test_the_sure_arm_is_chosen_and_the_return_conditioned_policy_gambles():
    conditioned = [return_conditioned_policy(gambling_bandit(seed), 15.0) for seed in SEEDS]
    assert [int(policy[0].argmax()) for policy in conditioned] == [GAMBLE] * 10
    assert [choice(seed) for seed in SEEDS] == [SURE] * 10


@pytest.mark.slow
@pytest.mark.parametrize(("weight", "arm"), [(0.0, GAMBLE), (1.0, SURE)])
def test_a_latent_that_knows_the_luck_at_the_start_forgets_it_under_the_constraint(weight, arm):
    log_ = gambling_bandit(0)
    tables = ControlTables(log_, num_latents=3)
    with torch.no_grad():
        tables.posterior.copy_(3 * torch.eye(3).expand(1, 2, 3, 3))  # the latent is the outcome
        arms = torch.tensor([[-5.0, 5.0], [5.0, -5.0], [-5.0, 5.0]])
        tables.policy.copy_(arms.double()[None])
    fit_control(tables, log_, weight)
    assert tables.best_policy(log_)[0].argmax() == arm
