from math import exp

import pytest
import torch

from grupo.algo.losses import Clip, ClipPreserveGradient, ClipWithin, Reinforce, WeightedReinforce
from grupo.algo.ratios import CappedRatio, RatioTo, SequenceTokenRatio, sequence, token
from grupo.core.component import component
from grupo.core.requires import Requires, merged_requires
from grupo.method import Method
from grupo.testing import properties
from grupo.testing.batches import make_batch, perturb_logp

# one action per row: ratios 1.6487, 0.6065, 1.0513 under an advantage of 2, then of -2
BATCH = make_batch(group=[0] * 6, advantage=[2.0, 2.0, 2.0, -2.0, -2.0, -2.0])
DELTAS = [[0.5], [-0.5], [0.05], [0.5], [-0.5], [0.05]]


def test_clip_takes_the_minimum_of_ratio_and_clipped_ratio():
    loss = Clip(clip_low=0.2, clip_high=0.28)(perturb_logp(BATCH, DELTAS), BATCH).flatten().tolist()
    expected = [
        -2 * 1.28,  # A > 0, r > 1.28: clipped
        -2 * exp(-0.5),  # A > 0, r < 0.8: the minimum is r A
        -2 * exp(0.05),
        2 * exp(0.5),  # A < 0, r > 1.28: the minimum is r A
        2 * 0.8,  # A < 0, r < 0.8: clipped
        2 * exp(0.05),
    ]
    assert loss == pytest.approx(expected)


def test_gradient_of_clip_is_minus_ratio_times_advantage_unless_clipped():
    pi = perturb_logp(BATCH, DELTAS)
    Clip(clip_low=0.2, clip_high=0.28)(pi, BATCH).sum().backward()
    assert pi.logp.grad is not None
    expected = [0, -2 * exp(-0.5), -2 * exp(0.05), 2 * exp(0.5), 0, 2 * exp(0.05)]
    assert pi.logp.grad.flatten().tolist() == pytest.approx(expected)


def test_clip_logs_the_clipped_tokens():
    metrics = Clip(clip_low=0.2, clip_high=0.28).metrics(perturb_logp(BATCH, DELTAS), BATCH)
    assert metrics["clip_frac/high"].flatten().tolist() == [1, 0, 0, 0, 0, 0]
    assert metrics["clip_frac/low"].flatten().tolist() == [0, 0, 0, 0, 1, 0]


def test_clip_with_sequence_ratio_spreads_the_gradient_over_the_row():
    batch = make_batch(group=[0], length=[2], advantage=[1.0])
    pi = perturb_logp(batch, [[0.2, -0.4]])  # s = exp((0.2 - 0.4) / 2) = exp(-0.1)
    loss = Clip(0.2, 0.2, sequence)(pi, batch)
    loss.sum().backward()
    assert loss.flatten().tolist() == pytest.approx([-exp(-0.1)] * 2)
    assert pi.logp.grad is not None  # two token losses, each with ds/dlogp = s / 2
    assert pi.logp.grad.flatten().tolist() == pytest.approx([-exp(-0.1)] * 2)


def test_on_policy_clip_has_the_gradient_of_reinforce():
    gradients = []
    for loss in (Clip(), Reinforce()):
        pi = perturb_logp(BATCH, [[0.0]] * 6)
        loss(pi, BATCH).sum().backward()
        assert pi.logp.grad is not None
        gradients.append(pi.logp.grad)
    assert torch.equal(*gradients)
    assert gradients[0].flatten().tolist() == [-2, -2, -2, 2, 2, 2]


def test_reinforce_is_minus_advantage_times_logp():
    batch = make_batch(group=[0, 0], advantage=[0.5, -3.0], logp=-2.0)
    assert Reinforce()(perturb_logp(batch, [[0.0], [0.0]]), batch).tolist() == [[1.0], [-6.0]]


def by_advantage(batch):
    width = 0.2 * batch.advantage.abs()
    return 1 - width, 1 + width


def test_clip_within_has_bounds_per_token():
    batch = make_batch(group=[0] * 4, advantage=[2.0, 0.5, -2.0, -0.5])
    pi = perturb_logp(batch, [[0.5], [0.5], [-0.7], [-0.7]])  # ratios 1.6487 and 0.4966
    loss = ClipWithin(by_advantage)(pi, batch)
    loss.sum().backward()
    assert loss.flatten().tolist() == pytest.approx([-2 * 1.4, -0.5 * 1.1, 2 * 0.6, 0.5 * 0.9])
    assert pi.logp.grad is not None
    assert pi.logp.grad.flatten().tolist() == [0, 0, 0, 0]
    metrics = ClipWithin(by_advantage).metrics(pi, batch)
    assert metrics["clip_frac/high"].flatten().tolist() == [1, 1, 0, 0]
    assert metrics["clip_frac/low"].flatten().tolist() == [0, 0, 1, 1]


def test_clip_within_constant_bounds_equals_clip():
    def bounds(batch):
        return torch.tensor(0.8), torch.tensor(1.28)

    loss = ClipWithin(bounds)(perturb_logp(BATCH, DELTAS), BATCH)
    assert torch.allclose(loss, Clip(0.2, 0.28)(perturb_logp(BATCH, DELTAS), BATCH))


@component
class EntropyBounds:
    requires = Requires(signals=("entropy",))

    def __call__(self, batch):
        entropy = batch.signals["entropy"]
        return 1 - entropy, 1 + entropy


def test_signals_of_bounds_are_measured_before_the_update():
    method = Method(loss=ClipWithin(EntropyBounds(), RatioTo("sampler")))
    assert merged_requires(method.loss).all_signals == {"entropy", "logp@sampler"}
    assert merged_requires(method.loss).recomputed_signals == set()
    assert method.requires.signals == {"entropy", "logp@sampler"}
    properties.required_signals_are_sufficient(method)
    batch = make_batch(group=[0], advantage=[1.0], signals={"entropy": [[0.25]]})
    assert method.loss(perturb_logp(batch, [[0.5]]), batch).tolist() == [[-1.25]]


def test_reinforce_weighted_by_the_ratio_has_the_gradient_of_ratio_times_advantage():
    gradients = []
    for loss in (WeightedReinforce(token), Clip(1e9, 1e9)):
        pi = perturb_logp(BATCH, DELTAS)
        loss(pi, BATCH).sum().backward()
        gradients.append(pi.logp.grad)
    assert torch.allclose(*gradients)


def test_weighted_reinforce_logs_its_weight_and_requires_its_signals():
    loss = WeightedReinforce(CappedRatio(1.5, RatioTo("sampler")))
    assert merged_requires(loss).all_signals == {"logp@sampler"}
    assert merged_requires(loss).recomputed_signals == frozenset()
    weight = loss.metrics(perturb_logp(BATCH, DELTAS), BATCH)["is_weight/mean"]
    assert weight.flatten().tolist() == pytest.approx([1.5, exp(-0.5), exp(0.05)] * 2)
    assert weight.shape == BATCH.advantage.shape


def test_losses_declare_the_stop_gradient_of_their_ratio():
    assert merged_requires(Clip(0.2, 0.2, SequenceTokenRatio())).surrogate_gradient
    assert merged_requires(ClipWithin(by_advantage, SequenceTokenRatio())).surrogate_gradient
    assert merged_requires(WeightedReinforce(token)).surrogate_gradient
    assert not merged_requires(Clip()).surrogate_gradient


def test_clip_preserve_gradient_weights_clipped_tokens_by_a_multiple_of_the_bound():
    weight = ClipPreserveGradient(0.2, 0.28, low_scale=0.5, high_scale=2.0)(
        perturb_logp(BATCH, DELTAS), BATCH
    )
    assert weight.flatten().tolist() == pytest.approx(
        [2 * 1.28, exp(-0.5), exp(0.05), exp(0.5), 0.5 * 0.8, exp(0.05)]
    )
