"""TEMPO: prefix-tree advantages, hand-computed and compared with the reference implementation."""

from math import sqrt

import pytest
import torch

from grupo.methods.tempo import PrefixTreeAdvantage, tempo
from grupo.testing.batches import make_batch

A, B, X, Y, Z, W = range(6)


def test_token_advantage_includes_branch_value_difference():
    batch = make_batch(
        group=[0] * 4,
        reward=[1, 0, 0, 0],
        length=[2] * 4,
        signals={"step/item": [[A, X], [A, Y], [B, Z], [B, W]]},
    )
    # V: 1/4 at the root, 1/2 after A, 0 after B; r - mean(r) is 3/4 or -1/4, the std 1/2
    s = 0.5 + 1e-6
    assert PrefixTreeAdvantage()(batch.reward, batch).tolist() == [
        pytest.approx([(0.75 + 0.25) / s, (0.75 + 0.5) / s]),
        pytest.approx([(-0.25 + 0.25) / s, (-0.25 - 0.5) / s]),
        pytest.approx([(-0.25 - 0.25) / s, -0.25 / s]),
        pytest.approx([(-0.25 - 0.25) / s, -0.25 / s]),
    ]


def test_without_branches_reduces_to_grpo():
    batch = make_batch(
        group=[0, 0],
        reward=[1, 0],
        length=[2, 2],
        signals={"step/item": [[A, X], [A, X]]},
    )
    first = 0.5 / (sqrt(0.5) + 1e-6)
    assert PrefixTreeAdvantage()(batch.reward, batch)[0].tolist() == pytest.approx([first] * 2)


def test_single_rollout_has_zero_advantage():
    batch = make_batch(group=[0], reward=[1], length=[2], signals={"step/item": [[A, X]]})
    assert PrefixTreeAdvantage()(batch.reward, batch).tolist() == [[0.0, 0.0]]


def test_masked_tokens_do_not_create_branches():
    signals = {"step/item": [[A, X, 7.0], [A, X, 8.0]]}
    batch = make_batch(
        group=[0, 0], reward=[1, 0], length=[2, 2], signals={"step/item": [[A, X]] * 2}
    )
    same = PrefixTreeAdvantage()(batch.reward, batch)
    wide = make_batch(
        group=[0, 0, 1],
        reward=[1, 0, 0],
        length=[2, 2, 3],
        signals={"step/item": [*signals["step/item"], [0, 0, 0]]},
    )
    assert torch.equal(PrefixTreeAdvantage()(wide.reward, wide)[:2, :2], same)


def test_requires_action_labels():
    assert tempo().requires.all_signals == {"step/item"}
