from dataclasses import replace
from math import sqrt

import pytest
import torch

from grupo.algo.advantages import ScaleByStd, StandardiseBatch, Whiten
from grupo.core import group_ops
from grupo.core.requires import merged_requires
from grupo.testing.batches import make_batch


def test_scale_by_std_divides_by_the_unbiased_deviation_plus_eps():
    batch = make_batch(group=[0, 0, 0, 0, 1, 1])
    x = torch.tensor([1.5, -0.5, -0.5, -0.5, 2.0, -2.0], dtype=torch.float64)
    s0, s1 = sqrt((2.25 + 3 * 0.25) / 3), sqrt(8 / 1)  # 1 and 2.828
    expected = [1.5 / (s0 + 0.5), *[-0.5 / (s0 + 0.5)] * 3, 2 / (s1 + 0.5), -2 / (s1 + 0.5)]
    assert ScaleByStd(eps=0.5)(x, batch).tolist() == pytest.approx(expected)


def test_scale_by_population_std():
    x = torch.tensor([1.0, -1.0], dtype=torch.float64)
    scaled = ScaleByStd(eps=0.0, std=group_ops.population_std)(x, make_batch(group=[0, 0]))
    assert scaled.tolist() == [1.0, -1.0]  # sqrt((1 + 1) / 2) = 1


def test_scaling_equal_values_gives_0_not_nan():
    x = torch.zeros(3, dtype=torch.float64)
    assert ScaleByStd()(x, make_batch(group=[0, 0, 1])).tolist() == [0.0, 0.0, 0.0]


def test_whiten_counts_every_token_of_the_batch():
    batch = make_batch(group=[0, 1], length=[1, 3])
    whitened = Whiten(eps=0.0)(torch.tensor([4.0, 0.0], dtype=torch.float64), batch)
    # actions 4, 0, 0, 0: mean 1, unbiased variance (9 + 1 + 1 + 1) / 3 = 4
    assert whitened.tolist() == [[1.5, 0.0, 0.0], [-0.5, -0.5, -0.5]]


def test_whiten_declares_that_it_needs_the_whole_batch():
    assert merged_requires(Whiten()).whole_batch


def test_standardise_batch_counts_every_rollout_once():
    batch = make_batch(group=[0, 0, 1], length=[1, 9, 3])
    x = torch.tensor([1.0, 3.0, 5.0], dtype=torch.float64)  # mean 3, squares 4 + 0 + 4
    assert StandardiseBatch(eps=0.0)(x, batch).tolist() == [-1.0, 0.0, 1.0]
    s = sqrt(8 / 3)
    population = StandardiseBatch(eps=0.5, std=group_ops.population_std)(x, batch)
    assert population.tolist() == pytest.approx([-2 / (s + 0.5), 0.0, 2 / (s + 0.5)])


def test_standardise_batch_ignores_rollouts_without_actions():
    batch = make_batch(group=[0, 0, 0])
    two_act = replace(batch, mask=batch.mask & torch.tensor([[True], [True], [False]]))
    x = torch.tensor([1.0, 3.0, 99.0], dtype=torch.float64)
    standardised = StandardiseBatch(std=group_ops.population_std)(x, two_act)
    assert standardised[:2].tolist() == pytest.approx([-1, 1])


def test_standardising_equal_values_gives_0_not_nan():
    x = torch.ones(3, dtype=torch.float64)
    assert StandardiseBatch()(x, make_batch(group=[0, 0, 1])).tolist() == [0.0, 0.0, 0.0]
    assert StandardiseBatch()(x[:1], make_batch(group=[0])).tolist() == [0.0]


def test_standardise_batch_declares_that_it_needs_the_whole_batch():
    assert merged_requires(StandardiseBatch()).whole_batch
