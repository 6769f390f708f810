"""Ratios of turns that stand in several rows."""

from dataclasses import replace
from math import log

import pytest
import torch

from grupo.algo.losses import ReverseClip
from grupo.testing.batches import make_batch, perturb_logp


def test_a_later_turn_counts_in_whatever_row_it_stands():
    batch = make_batch(group=[0, 0], turn=[[1], [0]], advantage=[1.0, 1.0])
    first = {"reward": batch.reward[:1], "group": batch.group[:1]}
    one = replace(batch, rollout=torch.tensor([0, 0]), **first)
    pi = perturb_logp(one, [[log(1.1)], [0.0]])
    assert ReverseClip(0.2)(pi, one).flatten().tolist() == pytest.approx([-1.1, -1.1])


def test_it_says_that_it_couples_rows_and_stops_the_gradient():
    assert ReverseClip(0.2).couples_rows
    assert ReverseClip(0.2).has_stop_gradient
