from math import log

import pytest
import torch

from grupo.algo.losses import AdaptiveClip
from grupo.methods.bapo import bapo
from grupo.testing.batches import make_batch, perturb_logp
from tests.helpers.recorded_batches import six


def learn(loss, ratios, advantage):
    batch = make_batch(group=[0] * len(ratios), advantage=advantage)
    pi = perturb_logp(batch, [[log(r)] for r in ratios])
    values = loss(pi, batch)
    values.sum().backward()
    assert pi.logp.grad is not None
    return values.flatten().tolist(), pi.logp.grad.flatten().tolist()


def bounds(ratios, advantage, share=0.5):
    r, A = torch.tensor(ratios).double(), torch.tensor(advantage).double()
    return AdaptiveClip(positive_share=share).bounds(r, A)


def test_bounds_stay_narrow_while_positive_tokens_have_their_share():
    assert bounds([1.0, 0.5], [1.0, -1.0]) == (0.6, 1.2)  # 1 of 1.6


def test_lower_bound_moves_first():
    # good is held to d, bad is 2: half at d = 2, eight steps of 0.1 from 1.2
    low, high = bounds([2.5, 1.0], [1.0, -2.0])
    assert low == 0.9
    assert high == pytest.approx(2.0)


def test_widest_bounds_are_used_if_none_balances():
    assert bounds([1.0, 1.0], [1.0, -9.0]) == (0.9, 3.0)
    assert bounds([1.0, 1.0], [-1.0, -1.0]) == (0.9, 3.0)  # nothing good
    assert bounds([1.0, 1.0], [0.0, 0.0]) == (0.6, 1.2)  # nothing at all


def test_loss_is_ppo_clip_at_the_searched_bounds():
    values, gradient = learn(AdaptiveClip(), [2.5, 1.0, 0.5], [1.0, -1.5, -0.5])
    # bad 1.5 + 0.5 * 0.9 = 1.95: half at d = 2.0, the first of 1.2 + 0.1 k that reaches it
    assert values == pytest.approx([-2.0, 1.5, 0.45])
    assert gradient == pytest.approx([0, 1.5, 0])
    values, gradient = learn(AdaptiveClip(), [1.3, 1.0], [1.0, -0.5])  # 1.2 of 1.7 is enough
    assert values == pytest.approx([-1.2, 0.5])
    assert gradient == pytest.approx([0, 0.5])


def test_defaults_are_those_of_the_readme_and_the_minibatch_is_seen_whole():
    loss = bapo().loss
    assert loss == AdaptiveClip(
        narrow_bounds=(0.6, 1.2), wide_bounds=(0.9, 3.0), positive_share=0.5
    )
    assert loss.couples_rows


def test_matches_the_authors_code():
    # WooooDyy/BAPO @ 7287044, recipe/bapo/policy_loss.py, compute_policy_loss_bapo, good / bad
    # at least 1; inputs as below: it stops at 0.9 and 2
    batch = six(advantage=[0.6, -1.4, -0.9, 0.3, 0.5, -2.0])
    method = bapo(positive_share=0.5)
    pi = perturb_logp(
        batch,
        [
            [0.5, 0.9, 0.6],
            [-0.2, -1.2, 0],
            [0.3, 0, 0],
            [0.2, 0.5, 0],
            [-0.4, 0.05, 0.15],
            [-0.8, 0, 0],
        ],
    )
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    assert loss.item() == pytest.approx(-0.004198418, rel=1e-5)
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    rows = [
        [-0.08243606, 0.0, -0.09110594],
        [0.0, 0.0],
        [0.1012394],
        [-0.03053507, -0.04121803],
        [-0.02793, -0.04380296, -0.04840976],
        [0.0],
    ]
    numbers = [x for row in rows for x in row]
    assert gradient[batch.mask].tolist() == pytest.approx(numbers, rel=1e-5, abs=1e-9)
