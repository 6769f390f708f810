"""PS-GRPO: two paraphrases of a question."""

import pytest

from grupo.algo.losses import KL, Clip
from grupo.methods.ps_grpo import ps_grpo
from grupo.rollouts.samplers import Paraphrased
from grupo.testing.batches import batch_of


def test_rollouts_of_one_paraphrase_are_compared():
    parts = {
        "agreement": [1.0, 0.0, 0.5, 0.5],
        "agreement/prompt": [0.0, 0.0, 2.0, 2.0],
        "correct": [0.0, 0.0, 1.0, 0.0],
    }
    batch = batch_of(group=[0] * 4, parts=parts)
    high = 0.5**0.5
    both = batch.credited(ps_grpo().credit).advantage[:, 0].tolist()
    assert both == pytest.approx([high, -high, high, -high], rel=1e-5)
    alone = batch.credited(ps_grpo(accuracy=0.0).credit).advantage[:, 0].tolist()
    assert alone == pytest.approx([high, -high, 0.0, 0.0], rel=1e-5)


def test_the_defaults():
    method = ps_grpo()
    assert method == ps_grpo(group=4, accuracy=1.0, clip=0.2, kl=0.04)
    assert method.sample == Paraphrased(4)
    assert method.loss == Clip(0.2, 0.2) + 0.04 * KL()
