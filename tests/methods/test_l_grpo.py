"""L-GRPO: hand-computed length rewards in groups without failures."""

import pytest

from grupo.algo.aggregation import token_mean
from grupo.methods.l_grpo import BrevityWhenAllCorrect, l_grpo
from grupo.testing.batches import make_batch


def answers(correct, length, group=None):
    return make_batch(
        group=group or [0] * len(correct),
        reward=list(correct),
        length=length,
        reward_terms={"correct": correct},
    )


def test_shorter_rollouts_are_preferred_in_all_correct_group():
    batch = answers([1, 1, 1], [100, 200, 300])
    r = BrevityWhenAllCorrect(1000, 1.0)(batch.reward, batch)
    assert r.tolist() == pytest.approx([1.9, 1.8, 1.7])
    # 0.1 over a std of 0.1
    A = l_grpo(max_length=1000).advantage(batch.reward, batch)
    assert A.tolist() == pytest.approx([1, 0, -1], abs=2e-5)


def test_length_is_ignored_when_any_rollout_fails():
    batch = answers([1, 0, 1], [100, 200, 300])
    assert BrevityWhenAllCorrect(1000, 1.0)(batch.reward, batch).tolist() == [1, 0, 1]


def test_all_correct_is_decided_per_group():
    batch = answers([1, 1, 0, 1], [4, 4, 4, 4], group=[0, 0, 1, 1])
    r = BrevityWhenAllCorrect(8, 1.0)(batch.reward, batch)
    assert r.tolist() == pytest.approx([1.5, 1.5, 0, 1])


def test_advantage_is_zero_when_lengths_are_equal():
    batch = answers([1, 1], [4, 4])
    assert l_grpo(max_length=8).advantage(batch.reward, batch).tolist() == [0.0, 0.0]


def test_clip_and_reward_weights_match_first_stage():
    method = l_grpo(max_length=8)
    assert (method.loss.clip_low, method.loss.clip_high) == (0.2, 0.28)
    assert method.aggregation is token_mean
