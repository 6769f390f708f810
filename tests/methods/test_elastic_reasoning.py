"""Elastic Reasoning: separate thinking and answer budgets (the turn strategy has its own tests)."""

import pytest
import torch

from grupo.algo.aggregation import sequence_mean
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch
from grupo.methods.elastic_reasoning import elastic_reasoning
from grupo.rollouts.samplers import GroupSampler
from grupo.rollouts.turns import ThinkingBudget


def test_segments_share_advantage_and_forced_tokens_are_masked():
    mask = torch.tensor([[1, 1, 0, 1], [1, 1, 1, 1]]).bool()  # the first was closed by force
    reward = torch.tensor([1.0, 0.0], dtype=torch.float64)
    rows = {"rollout": torch.arange(2), "mask": mask, "old_logp": -mask.double()}
    batch = Batch.of(reward, torch.tensor([0, 0]), **rows)
    high = 0.5 / 0.5**0.5  # r - mean over the unbiased deviation
    A = batch.with_advantage(elastic_reasoning().advantage).advantage
    assert A[0].tolist() == pytest.approx([high, high, 0.0, high], rel=1e-5)
    assert A[1].tolist() == pytest.approx([-high] * 4, rel=1e-5)
    assert sequence_mean(batch)[0].tolist() == pytest.approx([1 / 6, 1 / 6, 0, 1 / 6])


def test_defaults_match_paper():
    method = elastic_reasoning()
    assert method.sampler == GroupSampler(8, ThinkingBudget(1024, 1024, "</think>"))
    assert method.loss == Clip(0.2, 0.2) + 0.001 * KL()
    assert elastic_reasoning(kl_coef=0.0).loss == Clip(0.2, 0.2)


def test_update_plan_is_the_released_one():
    assert elastic_reasoning().updates == Updates(minibatches=2)
