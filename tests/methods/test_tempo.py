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


def test_matches_reference_implementation():
    # fatebreaker/tempo at 0a1c273, compute_tempo_outcome_advantage, in float32
    batch = make_batch(
        group=[0, 0, 0, 0, 1, 1, 1],
        reward=[1, 0, 0, 0, 1, 0, 1],
        length=[3, 3, 2, 3, 3, 3, 2],
        signals={
            "step/item": [
                [5, 7, 7],
                [5, 8, 9],
                [6, 1, 1],
                [6, 2, 2],
                [3, 3, 3],
                [3, 3, 4],
                [3, 4, 4],
            ]
        },
    )
    recorded = [
        [1.9999959468841553, 2.499994993209839, 1.4999970197677612],
        [0.0, -1.4999970197677612, -0.4999989867210388],
        [-0.9999979734420776, -0.4999989867210388, 0.0],
        [-0.9999979734420776, -0.4999989867210388, -0.4999989867210388],
        [0.5773492455482483, 0.28867456316947937, 1.4433730840682983],
        [-1.1546986103057861, -1.443373203277588, -2.0207226276397705],
        [0.5773492455482483, 1.154698371887207, 0.0],
    ]
    advantages = (PrefixTreeAdvantage()(batch.reward, batch) * batch.mask).tolist()
    assert advantages == [pytest.approx(row, abs=1e-6) for row in recorded]


def test_requires_action_labels():
    assert tempo().required_signals == {"step/item"}
