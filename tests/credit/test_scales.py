from math import sqrt

import pytest
import torch

from grupo import groups
from grupo.credit import ScaleByStd, Whiten
from grupo.testing import batch_of


def test_scale_by_std_divides_by_the_unbiased_deviation_plus_eps():
    batch = batch_of(group=[0, 0, 0, 0, 1, 1])
    x = torch.tensor([1.5, -0.5, -0.5, -0.5, 2.0, -2.0], dtype=torch.float64)
    s0, s1 = sqrt((2.25 + 3 * 0.25) / 3), sqrt(8 / 1)  # 1 and 2.828
    expected = [1.5 / (s0 + 0.5), *[-0.5 / (s0 + 0.5)] * 3, 2 / (s1 + 0.5), -2 / (s1 + 0.5)]
    assert ScaleByStd(eps=0.5)(x, batch).tolist() == pytest.approx(expected)


def test_scale_by_another_deviation():
    x = torch.tensor([1.0, -1.0], dtype=torch.float64)
    scaled = ScaleByStd(eps=0.0, std=groups.population_std)(x, batch_of(group=[0, 0]))
    assert scaled.tolist() == [1.0, -1.0]  # sqrt((1 + 1) / 2) = 1


def test_scaling_what_does_not_differ_gives_zero_not_nan():
    x = torch.zeros(3, dtype=torch.float64)
    assert ScaleByStd()(x, batch_of(group=[0, 0, 1])).tolist() == [0.0, 0.0, 0.0]


def test_whiten_counts_every_action_of_the_batch():
    batch = batch_of(group=[0, 1], length=[1, 3])
    white = Whiten(eps=0.0)(torch.tensor([4.0, 0.0], dtype=torch.float64), batch)
    # actions 4, 0, 0, 0: mean 1, unbiased variance (9 + 1 + 1 + 1) / 3 = 4
    assert white.tolist() == [[1.5, 0.0, 0.0], [-0.5, -0.5, -0.5]]


def test_whiten_says_that_it_reads_the_whole_batch():
    assert Whiten().reads_whole_batch
