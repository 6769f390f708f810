from dataclasses import replace
from math import sqrt

import pytest
import torch

from grupo.algo.aggregation import sequence_mean
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.methods.krpo import KalmanAdvantage, krpo
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch
from grupo.testing.property_helpers import select_rollouts


def test_first_advantage_uses_posterior_mean():
    batch = make_batch(group=[0], reward=[1.0])
    K = 1.00001 / 1.01001  # P' / (P' + noise), P' = 1 + 1e-5
    A = KalmanAdvantage(eps=0.0)(batch.reward, batch)
    assert A.tolist() == pytest.approx([(1 - K) / sqrt((1 - K) * 1.00001)])


def test_each_group_has_its_own_filter():
    batch = make_batch(group=[0, 1, 0, 1], reward=[1.0, 0.0, 0.0, 0.5])
    single_group = make_batch(group=[0, 0], reward=[0.0, 0.5])
    interleaved = KalmanAdvantage()(batch.reward, batch)[[1, 3]]
    assert interleaved.tolist() == KalmanAdvantage()(single_group.reward, single_group).tolist()


def test_zero_process_noise_reduces_to_mean_with_prior():
    batch = make_batch(group=[0] * 3, reward=[1.0, 0.0, 0.5])
    A = KalmanAdvantage(process_noise=0.0, observation_noise=1.0, eps=0.0)(batch.reward, batch)
    # after n rewards the mean is their sum / (n + 1), the variance 1 / (n + 1)
    m, P = [1 / 2, 1 / 3, 1.5 / 4], [1 / 2, 1 / 3, 1 / 4]
    expected = [(r - m[i]) / sqrt(P[i]) for i, r in enumerate([1.0, 0.0, 0.5])]
    assert A.tolist() == pytest.approx(expected)


def test_result_is_independent_of_rollout_order():
    batch = make_batch(group=[0] * 4, reward=[1.0, 0.0, 0.5, 0.25])
    logp = torch.tensor([[-1.1234567], [-0.7654321], [-2.3141592], [-0.2718281]]).double()
    batch = replace(batch, old_logp=logp, inputs=torch.arange(4))
    back = torch.tensor([3, 2, 1, 0])
    reordered = select_rollouts(batch, back)
    A, other = (KalmanAdvantage()(b.reward, b) for b in (batch, reordered))
    assert other.tolist() == A[back].tolist()


def test_defaults_match_reference_implementation():
    method = krpo()
    assert method.sampler == GroupSampler(12)
    assert method.loss == Clip(0.2, 0.2) + 0.01 * KL()
    assert method.aggregation is sequence_mean
    assert krpo(kl_coef=0.0).requires.all_signals == frozenset()


def test_step_has_24_minibatches():
    assert krpo().updates == Updates(minibatches=24)
