from dataclasses import replace
from math import exp, log, sqrt

import pytest
import torch

from grupo.algo.aggregation import group_sum
from grupo.algo.losses import DynamicClipBounds
from grupo.algo.minibatches import Updates
from grupo.core.batch import TaskHistory
from grupo.methods.dcpo_dynamic_clip import SmoothStandardise, dcpo_dynamic_clip
from grupo.testing.batches import make_batch, perturb_logp


def advantage_after(now, *past):
    happened = TaskHistory(tuple(range(len(past))), past)
    batch = make_batch(group=[0] * len(now), reward=now, history=[happened])
    return SmoothStandardise()(batch.reward, batch).tolist()


def test_rarer_tokens_have_wider_clips():
    batch = replace(
        make_batch(group=[0], length=[2]), old_logp=torch.tensor([[log(0.9), log(0.01)]]).double()
    )
    low, high = DynamicClipBounds(0.16, 0.2)(batch)
    # examples of the authors' README: p in [0.69, 1.06] for q = 0.9, [0.005, 0.05] for q = 0.01
    assert low.flatten().tolist() == pytest.approx([(1 + sqrt(1 - 0.64 / 0.9)) / 2, 0.5])
    assert high.flatten().tolist() == pytest.approx([(1 + sqrt(1 + 0.8 / 0.9)) / 2, 5.0])


def test_bounds_solve_the_constraint_on_the_probability_change():
    q, r = 0.4, (1 + sqrt(1 + 0.8 / 0.4)) / 2
    assert (r - 1) * r * q == pytest.approx(0.2)  # |r - 1| p = high with p = r q


def test_first_group_of_a_task_is_grpo():
    std = sqrt((3 * 0.0625 + 0.5625) / 3)
    assert advantage_after([1.0, 0.0, 0.0, 0.0]) == pytest.approx(
        [0.75 / std, -0.25 / std, -0.25 / std, -0.25 / std], rel=1e-5
    )


def test_group_of_equal_rewards_learns_from_the_task_history():
    # i = 2, means 0.5 and 1, variances 1/3 and 0: mean 0.75, variance 1/6 + 1/16
    total = 0.25 / sqrt(1 / 6 + 1 / 16)
    assert advantage_after([1.0] * 4, (1.0, 1.0, 0.0, 0.0)) == pytest.approx(
        [total / 2] * 4, rel=1e-5
    )
    assert advantage_after([1.0] * 4, (1.0, 1.0, 1.0, 1.0)) == [0.0] * 4
    assert advantage_after([1.0]) == [0.0]


def test_bounds_match_the_authors_code():
    # lime-RL/DCPO @ 01787b0, get_clip_low_high at 0.16, 0.2 and 10
    old = torch.tensor([[log(0.9), log(0.01), log(0.4)]]).double()
    low, high = DynamicClipBounds(0.16, 0.2)(
        replace(make_batch(group=[0], length=[3]), old_logp=old)
    )
    assert low.flatten().tolist() == pytest.approx([0.768741924943, 0.5, 0.5])
    assert high.flatten().tolist() == pytest.approx([1.187184270936, 5.0, 1.366025403784])


def test_loss_is_clipped_at_token_bounds_and_capped():
    batch = make_batch(group=[0] * 4, advantage=[1.0, 1.0, -1.0, -1.0], logp=log(0.4))
    pi = perturb_logp(batch, [[0.5], [0.2], [-0.9], [3.0]])
    loss = dcpo_dynamic_clip().loss(pi, batch)
    loss.sum().backward()
    low, high = (1 + 0) / 2, (1 + sqrt(3)) / 2  # 1 - 4 * 0.16 / 0.4 < 0; 1 + 4 * 0.2 / 0.4 = 3
    assert loss.flatten().tolist() == pytest.approx([-high, -exp(0.2), low, 10.0])
    assert pi.logp.grad is not None
    assert pi.logp.grad.flatten().tolist() == pytest.approx([0, -exp(0.2), 0, 0])


def test_aggregation_sums_answers_within_their_group():
    batch = make_batch(group=[0, 0, 1], length=[1, 2, 2])
    assert dcpo_dynamic_clip().aggregation is group_sum
    assert group_sum(batch).tolist() == [[0.5, 0.0], [0.25, 0.25], [0.25, 0.25]]


def test_defaults_are_the_authors():
    assert dcpo_dynamic_clip().loss.bounds == DynamicClipBounds(clip_low=0.16, clip_high=0.2)
    assert dcpo_dynamic_clip().loss.ratio.cap == 10.0


def test_update_plan_is_the_released_one():
    assert dcpo_dynamic_clip().updates == Updates(minibatches=16)
