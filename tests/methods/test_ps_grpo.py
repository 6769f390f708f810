"""PS-GRPO: two paraphrases of a question."""

import pytest

from grupo.algo.losses import KL, Clip
from grupo.methods.ps_grpo import ps_grpo
from grupo.rollouts.samplers import ParaphraseSampler
from grupo.testing.batches import make_batch


def test_rollouts_are_compared_within_paraphrase():
    parts = {
        "agreement": [1.0, 0.0, 0.5, 0.5],
        "agreement/prompt": [0.0, 0.0, 2.0, 2.0],
        "correct": [0.0, 0.0, 1.0, 0.0],
    }
    batch = make_batch(group=[0] * 4, reward_terms=parts)
    high = 0.5**0.5
    actual = batch.with_advantage(ps_grpo().advantage).advantage[:, 0].tolist()
    assert actual == pytest.approx([high, -high, high, -high], rel=1e-5)
    without_accuracy = (
        batch.with_advantage(ps_grpo(accuracy_coef=0.0).advantage).advantage[:, 0].tolist()
    )
    assert without_accuracy == pytest.approx([high, -high, 0.0, 0.0], rel=1e-5)


def test_default_hyperparameters():
    method = ps_grpo()
    assert method.sampler == ParaphraseSampler(4)
    assert method.loss == Clip(0.2, 0.2) + 0.04 * KL()
