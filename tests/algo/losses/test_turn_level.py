"""Clipped losses of turns in several rows."""

from dataclasses import replace
from math import log

import pytest
import torch

from grupo.algo.losses import ReverseClip
from grupo.core.requires import merged_requires
from grupo.testing.batches import make_batch, perturb_logp


def test_reverse_clip_includes_later_turns_of_other_rows():
    batch = make_batch(group=[0, 0], turn=[[1], [0]], advantage=[1.0, 1.0])
    rollout = torch.tensor([0, 0])
    batch = replace(batch, rollout=rollout, reward=batch.reward[:1], group=batch.group[:1])
    pi = perturb_logp(batch, [[log(1.1)], [0.0]])
    assert ReverseClip(0.2)(pi, batch).flatten().tolist() == pytest.approx([-1.1, -1.1])


def test_reverse_clip_declares_coupling_and_stop_gradient():
    assert merged_requires(ReverseClip(0.2)).coupled_rows
    assert merged_requires(ReverseClip(0.2)).surrogate_gradient
