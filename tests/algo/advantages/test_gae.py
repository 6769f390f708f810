"""Generalised advantage estimation and its variants of VAPO and T-PPO."""

import pytest
import torch

from grupo.algo.advantages.gae import GAE, ExtendedGAE, LengthAdaptiveGAE, gae
from grupo.core.aux_heads import LinearHead
from grupo.core.requires import merged_requires
from grupo.testing.batches import make_batch

NAN = float("nan")


def test_gae_spans_all_rows_of_a_rollout(two_row_batch):
    V = torch.tensor([[0.1, NAN, 0.2, 0.3], [0.5, NAN, NAN, NAN], [0.4, 0.6, NAN, NAN]])
    r = torch.zeros(3, 4)
    r[2, 1], r[1, 0] = 1.0, 2.0
    # rollout 0: d = 0.1, 0.1, 0.1, 0.2, 0.4; from the end 0.4, 0.2 + 0.2, 0.1 + 0.2, ...
    A = gae(r, V, two_row_batch, gamma=1.0, gae_lambda=0.5)
    assert A[0].tolist() == pytest.approx([0.1 + 0.125, 0, 0.1 + 0.15, 0.1 + 0.2])
    assert A[2].tolist() == pytest.approx([0.4, 0.4, 0, 0])
    assert A[1].tolist() == pytest.approx([1.5, 0, 0, 0])


def test_gae_with_lambda_one_is_the_return_minus_the_value():
    batch = make_batch(group=[0], length=[3], signals={"value": [[0.2, 0.4, 0.5]]})
    A = GAE(gamma=1.0, gae_lambda=1.0)(torch.tensor([1.0]), batch)
    assert A[0].tolist() == pytest.approx([0.8, 0.6, 0.5])
    reward = torch.tensor([[1.0, 0.0, 1.0]])
    A = GAE(gamma=0.5, gae_lambda=1.0)(reward, batch)  # returns 1.25, 0.5, 1
    assert A[0].tolist() == pytest.approx([1.05, 0.1, 0.5])


def test_gae_matches_verl():
    # compute_gae_advantage_return of PRIME-RL/PRIME's verl, commit 18ad596, before it whitens
    batch = make_batch(group=[0, 0], length=[5, 5])
    V = torch.tensor([[0.1, 0.35, -0.2, 0.6, 0.55], [0.0, 0.25, 0.3, 0.15, 0.4]])
    r = torch.tensor([[0.0, 0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0, -0.5]])
    A = gae(r, V, batch, gamma=0.99, gae_lambda=0.9)
    expected = [0.63292687, 0.43370019, 1.10179595, 0.34545, 0.45]
    assert A[0].tolist() == pytest.approx(expected, abs=1e-6)
    expected = [-0.22411071, -0.52930495, -0.6468069, -0.5559, -0.9]
    assert A[1].tolist() == pytest.approx(expected, abs=1e-6)


def test_gae_requires_a_value_head():
    assert merged_requires(GAE()).heads == (LinearHead("value"),)
    assert merged_requires(GAE()).all_signals == {"value"}


def long_and_short_batch():
    value = [[0.0, 0.1, 0.2, 0.4], [0.0, 0.0, 9.0, 9.0]]
    return make_batch(group=[0, 0], reward=[1.0, -1.0], length=[4, 2], signals={"value": value})


def test_short_rollouts_have_lambda_0_in_length_adaptive_gae():
    A = long_and_short_batch().with_advantage(LengthAdaptiveGAE(alpha=0.05)).advantage
    assert A[0].tolist() == pytest.approx([0.1, 0.1, 0.2, 0.6])


def finished_and_truncated_batch():
    value, truncated = [[0.2, 0.4, 0.5]] * 2, {"cut": [0.0, 1.0]}
    return make_batch(
        [0, 0], [1.0, 7.0], length=[3, 3], reward_terms=truncated, signals={"value": value}
    )


def test_extended_gae_bootstraps_from_the_discounted_last_value():
    batch = finished_and_truncated_batch()
    A = batch.with_advantage(ExtendedGAE(gamma=0.9, gae_lambda=0.0)).advantage[1]
    assert A.tolist() == pytest.approx([0.36 - 0.2, 0.45 - 0.4, 0.45 - 0.5])
