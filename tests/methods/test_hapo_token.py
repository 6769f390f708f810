"""HAPO: hand-computed values with e = log entropy, 0.8-quantile 0 and h = scaled e."""

from math import exp

import pytest
import torch

from grupo.algo.losses import EntropyAdaptiveClip
from grupo.algo.losses.entropy_aware import scaled_log_entropy
from grupo.algo.minibatches import Updates
from grupo.methods.hapo_token import StandardiseOnTokens, hapo_token
from grupo.testing.batches import make_batch, perturb_logp

# six tokens, log entropies sorted -2, -1, -1, -1, 0, 1, the 0.8-quantile the fifth
ENTROPY = torch.tensor([[exp(-2), exp(-1), exp(-1), exp(-1), exp(0), exp(1)]]).double()


def inputs(moves, advantage=1.0):
    batch = make_batch([0], length=[6], advantage=[advantage])
    pi = perturb_logp(batch, [moves])
    pi["entropy"] = ENTROPY.clone()
    return pi, batch


def test_scaled_entropy_lies_between_minus_one_and_one():
    batch = make_batch([0], length=[6])
    assert scaled_log_entropy(ENTROPY, batch)[0].tolist() == pytest.approx(
        [-1, -0.5, -0.5, -0.5, 0, 1]
    )
    assert scaled_log_entropy(ENTROPY * 0 + 1, batch).eq(0).all()


def log_of(*ratios):
    return torch.tensor(ratios).log().tolist()


def test_low_entropy_clip_is_wider_below_and_damped_near_one():
    # h = -1/2: bounds 0.7 and 1.2, neutral from 0.85 to 1.1; h = -1 is damped to nothing
    pi, batch = inputs(log_of(1.0, 1.0, 1.15, 1.3, 1.0, 1.0))
    loss = EntropyAdaptiveClip()(pi, batch)
    assert loss[0, :4].tolist() == pytest.approx([0.0, -0.5, -1.15, -1.2])
    pi, batch = inputs(log_of(1.0, 0.72, 0.65, 1.0, 1.0, 1.0), advantage=-1.0)
    loss = EntropyAdaptiveClip()(pi, batch)
    assert loss[0, 1:3].tolist() == pytest.approx([0.72, 0.7])


def test_high_entropy_clip_is_wider_above_and_amplified_away_from_one():
    # h = 1: bounds 0.8 and 1.4, neutral from 0.9 to 1.2; h = 0 is PPO's clip
    pi, batch = inputs(log_of(1.0, 1.0, 1.0, 1.0, 1.3, 1.35))
    assert EntropyAdaptiveClip()(pi, batch)[0, 4:].tolist() == pytest.approx([-1.2, -2.7])
    pi, batch = inputs(log_of(1.0, 1.0, 1.0, 1.0, 1.0, 1.1))
    assert EntropyAdaptiveClip()(pi, batch)[0, 4:].tolist() == pytest.approx([-1.0, -1.1])


def test_negative_advantage_loss_is_bounded_by_dual_clip():
    pi, batch = inputs(log_of(1.0, 1.0, 1.0, 1.0, 30.0, 1.0), advantage=-1.0)
    assert EntropyAdaptiveClip()(pi, batch)[0, 4].item() == pytest.approx(10.0)


def test_gradient_matches_surrogate():
    pi, batch = inputs(log_of(1.0, 1.0, 1.15, 1.3, 1.3, 1.35))
    (gradient,) = torch.autograd.grad(EntropyAdaptiveClip()(pi, batch).sum(), pi.logp)
    assert gradient[0].tolist() == pytest.approx([0.0, -0.5, -1.15, 0.0, 0.0, -2.7])


def test_advantages_are_centred_over_tokens():
    batch = make_batch([0, 0], [1.0, 0.0], length=[3, 1])
    # m = 3/4, s = sqrt(3/16)
    A = StandardiseOnTokens()(batch.reward, batch)
    assert A.tolist() == pytest.approx([0.57735, -1.73205], abs=1e-4)


def test_extreme_advantages_fall_back_to_grpo():
    batch = make_batch([0, 0, 0], [1.0, 1.0, 0.0], length=[20, 20, 1])
    # over tokens A of the last would be -sqrt(40); GRPO's are 1/3, 1/3, -2/3 over sqrt(1/3)
    A = StandardiseOnTokens()(batch.reward, batch)
    assert A.tolist() == pytest.approx([0.57735, 0.57735, -1.1547], abs=1e-4)
    assert StandardiseOnTokens()(batch.reward * 0, batch).tolist() == [0, 0, 0]


def test_defaults_match_reference_implementation():
    assert (hapo_token().loss.clip_eps, hapo_token().loss.dual_clip) == (0.2, 10.0)
    assert hapo_token().sampler.group_size == 16


def test_step_has_16_minibatches():
    assert hapo_token().updates == Updates(minibatches=16)
