from math import log

import pytest
import torch

from grupo.algo.losses import AdaptiveClip
from grupo.algo.minibatches import Updates
from grupo.core.requires import merged_requires
from grupo.methods.bapo import bapo
from grupo.testing.batches import make_batch, perturb_logp


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
    assert merged_requires(loss).coupled_rows


def test_update_plan_is_the_released_one():
    assert bapo().updates == Updates(epochs=2, minibatches=4)
