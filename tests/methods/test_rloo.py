import pytest
import torch

from grupo.algo.advantages import Center
from grupo.algo.advantages.kl_in_reward import KLInReward
from grupo.algo.losses import Reinforce
from grupo.core import group_ops
from grupo.methods.rloo import rloo
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp


def test_baseline_is_leave_one_out_mean():
    batch = make_batch(group=[0, 0, 0], reward=[1.0, 0.0, 0.5])
    advantage = rloo(kl_coef=0.0).advantage(batch.reward, batch)
    assert advantage.tolist() == [1 - 0.25, 0 - 0.75, 0.5 - 0.5]


def test_sequence_kl_is_subtracted_before_baseline():
    reference = [[-1.5, -2.0], [-1.0, 9.0]]  # log old is -1: k1 = 0.5 + 1 and 0; 9 is padding
    batch = make_batch(
        group=[0, 0], reward=[1.0, 0.0], length=[2, 1], signals={"logp@ref": reference}
    )
    assert KLInReward(0.1)(batch.reward, batch).tolist() == pytest.approx([1 - 0.15, 0.0])
    assert rloo(kl_coef=0.1).advantage(batch.reward, batch).tolist() == pytest.approx([0.85, -0.85])


def test_single_rollout_has_zero_advantage():
    batch = make_batch(group=[0, 1, 1], reward=[7.0, 1.0, 1.0])
    assert rloo(kl_coef=0.0).advantage(batch.reward, batch).tolist() == [0.0, 0.0, 0.0]


def test_estimate_is_unbiased_without_standardization():
    # rewards are 1 or 0 with probability 1/4 and 3/4; the score of a success is 1 / (1/4) = 4,
    # of a failure -1 / (3/4), so that the gradient of the expected reward by p is 1
    rloo_sum = grpo_sum = 0.0
    for outcome in range(8):
        reward = [float(outcome >> i & 1) for i in range(3)]
        chance = 0.25 ** sum(reward) * 0.75 ** (3 - sum(reward))
        batch = make_batch(group=[0, 0, 0], reward=reward)
        score = torch.tensor([4.0 if r else -4 / 3 for r in reward], dtype=torch.float64)
        less_others = rloo(kl_coef=0.0).advantage(batch.reward, batch)
        standard = Center()(batch.reward, batch) / (
            group_ops.std(batch.reward, batch.group) + 1e-12
        )
        rloo_sum += chance * (less_others * score).mean().item()
        grpo_sum += chance * (standard * score).mean().item()
    assert rloo_sum == pytest.approx(1.0)
    assert abs(grpo_sum - 1.0) > 0.1


def test_loss_weights_sequence_likelihood_by_advantage():
    method = rloo(kl_coef=0.0)
    batch = make_batch(group=[0, 0], reward=[1.0, 0.0], length=[1, 2]).with_advantage(
        method.advantage
    )
    pi = perturb_logp(batch, [[0.5, 0.0], [0.5, -0.5]])
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    assert loss.item() == pytest.approx((-1 * -0.5 + 1 * (-0.5 - 1.5)) / 2)
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient.tolist() == [[-0.5, 0.0], [0.5, 0.5]]  # -A / N


def test_defaults_match_paper():
    method = rloo()
    assert (method.sampler, method.loss) == (GroupSampler(4), Reinforce())
    assert method.requires.all_signals == {"logp@ref"}
    assert rloo(kl_coef=0.0).requires.all_signals == frozenset()
    assert rloo(kl_coef=0.0).advantage == Center(group_ops.leave_one_out_mean)
