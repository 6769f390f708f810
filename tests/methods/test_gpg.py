import pytest
import torch

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Reinforce
from grupo.methods.gpg import gpg
from grupo.testing.batches import make_batch, perturb_logp


def test_credit_is_made_up_for_the_groups_without_signal():
    reward = [1.0, 0.0, 1.0, 1.0, 0.0, 0.0]
    batch = make_batch(group=[0, 0, 1, 1, 2, 2], reward=reward)
    # 4 of 6 rollouts are of groups all right or all wrong: alpha = 6 / 2
    assert gpg().advantage(batch.reward, batch).tolist() == [1.5, -1.5, 0, 0, 0, 0]


def test_it_counts_groups_with_signal_and_not_rewards_that_are_not_zero():
    batch = make_batch(group=[0, 0, 1, 1], reward=[1.0, -1.0, -1.0, -1.0])
    # no reward is 0, yet half of the groups are uninformative: alpha = 2, and A = 2 (+-1)
    assert gpg().advantage(batch.reward, batch).tolist() == [2, -2, 0, 0]


def test_all_groups_with_signal_leave_credit_as_it_is():
    batch = make_batch(group=[0, 0, 1, 1], reward=[1.0, 0.0, 3.0, 1.0])
    assert gpg().advantage(batch.reward, batch).tolist() == [0.5, -0.5, 1, -1]


def test_rounding_is_no_signal():
    batch = make_batch(group=[0] * 3 + [1] * 2, reward=[0.1] * 3 + [1.0, 0.0])
    assert gpg().advantage(batch.reward, batch).tolist() == [0, 0, 0, 1.25, -1.25]  # 5 / 2


def test_all_zero_rewards_give_no_signal():
    batch = make_batch(group=[0, 1, 1], reward=[7.0, 1.0, 1.0])
    assert gpg().advantage(batch.reward, batch).tolist() == [0, 0, 0]


def test_the_mean_gradient_does_not_shrink_with_groups_that_give_no_signal():
    def gradient(group, reward):
        batch = make_batch(group=group, reward=reward).with_advantage(gpg().advantage)
        pi = perturb_logp(batch, [[0.1]] * len(group))
        loss = (gpg().aggregation(batch) * gpg().loss(pi, batch)).sum()
        return torch.autograd.grad(loss, pi.logp)[0].flatten().tolist()

    alone = gradient([0, 0], [1.0, 0.0])
    beside = gradient([0, 0, 1, 1, 2, 2], [1.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    assert alone == [-0.25, 0.25]  # -A / 2
    assert beside[:2] == pytest.approx(alone)


def test_the_defaults_are_the_papers():
    assert gpg().loss == Reinforce()
    assert gpg().aggregation is token_mean
    assert gpg().required_signals == frozenset()


def test_matches_the_authors_code():
    # AMAP-ML/GPG @ e096da8, R1-V/src/r1-v/src/open_r1/trainer/grpo_trainer.py, its lines for "gpg"
    # with adjust_gd, for groups of two; they divide by (B - M) / B + 1e-5
    moves = [[0.1, -0.2], [0.3, 0.0], [0.2, 0.1], [-0.1, 0.4], [0.05, 0.1], [0.0, -0.3]]
    recorded = {
        (1.0, 0.0, 1.0, 1.0, 1.0, 0.0): (-0.003124953125, [-0.0624990625, 0.0624990625, 0, 0]),
        (1.0, -1.0, -1.0, -1.0, 1.0, 1.0): (0.099997000090, [-0.249992500, 0.249992500, 0, 0]),
    }
    for reward, (expected, slopes) in recorded.items():
        batch = make_batch(group=[0, 0, 1, 1, 2, 2], reward=reward, length=[2] * 6)
        batch = batch.with_advantage(gpg().advantage)
        pi = perturb_logp(batch, moves)
        loss = (gpg().aggregation(batch) * gpg().loss(pi, batch)).sum()
        (gradient,) = torch.autograd.grad(loss, pi.logp)
        assert loss.item() == pytest.approx(expected, rel=1e-4)
        assert gradient[:4, 0].tolist() == pytest.approx(slopes, rel=1e-4)


@pytest.mark.parametrize(
    ("reward", "verl", "ours"),
    [
        ([1.0, 2.0, 3.0, 0.5], [-0.5, 0.5, 1.25, -1.25], [-0.5, 0.5, 1.25, -1.25]),
        ([1.0, 0.0, 0.0, 0.0], [2, -2, 0, 0], [1, -1, 0, 0]),  # alpha 4 / 1, not 4 / 2
        ([1.0, -1.0, -1.0, -1.0], [1, -1, 0, 0], [2, -2, 0, 0]),  # alpha 4 / 4, not 4 / 2
    ],
)
def test_verl_counts_rewards_that_are_not_zero(reward, verl, ours):
    # verl-project/verl @ 1dda039, trainer/ppo/core_algos.py, compute_gpg_outcome_advantage: it
    # agrees where every group has signal and no reward is 0
    batch = make_batch(group=[0, 0, 1, 1], reward=reward)
    assert gpg().advantage(batch.reward, batch).tolist() == pytest.approx(ours)
    assert (verl == ours) == (reward[1] == 2.0)
