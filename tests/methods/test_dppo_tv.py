from dataclasses import replace
from math import log

import pytest
import torch

from grupo.methods.dppo_tv import BinaryTVTrustRegion, dppo_tv
from grupo.testing.batches import make_batch, perturb_logp

# what the sampler gave six tokens, and what the policy gives them now
OLD = [0.5, 0.5, 0.01, 0.5, 0.5, 0.5]
NEW = [0.6, 0.7, 0.1, 0.3, 0.3, 0.9]
ADVANTAGE = [1.0, 1.0, 1.0, 1.0, -1.0, -1.0]


def tokens(old, new, advantage):
    sampled = [[log(q)] for q in old]
    batch = make_batch(
        [0] * len(old), advantage=advantage, logp=0.0, signals={"logp@sampler": sampled}
    )
    return perturb_logp(batch, [[log(p)] for p in new]), batch


def test_probability_change_is_bounded_away_from_the_sampler_only():
    weights = BinaryTVTrustRegion()(*tokens(OLD, NEW, ADVANTAGE)).flatten().tolist()
    expected = [
        1.2,  # up by 0.1
        0,  # up by 0.2: beyond 0.15
        10,  # up by 0.09 only, though the ratio is 10
        0.6,  # down, against the advantage
        0,  # down by 0.2 with it
        1.8,  # up, against it
    ]
    assert weights == pytest.approx(expected)


def test_gradient_is_that_of_truncated_importance_sampling():
    pi, batch = tokens([0.5, 0.001], [0.6, 0.1], [1.0, -2.0])
    loss = dppo_tv().aggregation(batch) * dppo_tv().loss(pi, batch)
    loss.sum().backward()
    assert loss.flatten().tolist() == pytest.approx([-1.2 * log(0.6) / 2, 20 * 2 * log(0.1) / 2])
    assert pi.logp.grad is not None
    assert pi.logp.grad.flatten().tolist() == pytest.approx([-1.2 / 2, 20.0])  # 100 capped at 20


def test_matches_the_authors_code():
    # sail-sg/Stable-RL @ c6af1d1, compute_policy_loss_with_mask, dppo_binary_tv, cap 20, 0.15
    old = torch.tensor([[-1.0, -0.5, -2.0], [-0.7, -1.2, -0.3]], dtype=torch.float64)
    seen = {"logp@sampler": old.tolist()}
    batch = make_batch(group=[0, 0], length=[3, 3], advantage=[1.0, -1.0], signals=seen)
    batch = replace(batch, old_logp=old)
    pi = perturb_logp(batch, [[0.5, -0.1, -1.5], [-0.6, 0.3, 1.3]])
    loss = (dppo_tv().aggregation(batch) * dppo_tv().loss(pi, batch)).sum()
    loss.backward()
    assert loss.item() == pytest.approx(0.62971362536)
    assert pi.logp.grad is not None
    assert pi.logp.grad.flatten().tolist() == pytest.approx(
        [0, -0.150806236339, -0.037188360025, 0, 0.224976467929, 0.611549444603]
    )


def test_required_signals_and_defaults():
    assert dppo_tv().required_signals == {"logp@sampler"}
    assert dppo_tv().loss.weight == BinaryTVTrustRegion(
        threshold_low=0.15, threshold_high=0.15, cap=20.0
    )
