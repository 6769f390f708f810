from math import log, sqrt

import pytest
import torch

from grupo.algo.losses import Clip
from grupo.algo.losses.entropy_aware import minmax_entropy
from grupo.algo.ratios import SequenceTokenRatio
from grupo.core.batch import Signals
from grupo.methods.dhpo import HybridRatioClip, dhpo
from grupo.testing.batches import make_batch, perturb_logp

BATCH = make_batch(group=[0, 0], length=[2, 2], advantage=[1.0, -1.0])
MOVES = [[log(1.5), log(0.8)], [log(1.5), log(0.8)]]
ENTROPY = [[0.2, 0.8], [0.3, 0.3]]


def learn(loss, batch=BATCH):
    pi = Signals(
        {**perturb_logp(batch, MOVES), "entropy": torch.tensor(ENTROPY, dtype=torch.float64)}
    )
    values = loss(pi, batch)
    values.sum().backward()
    assert pi.logp.grad is not None
    return values, pi.logp.grad


def test_both_ratios_are_clipped_before_they_are_mixed():
    s = sqrt(1.5 * 0.8)  # 1.0954
    values, gradient = learn(
        HybridRatioClip((0.2, 0.2), (0.05, 0.05), base_weight=0.5, entropy_weight=0.0)
    )
    # A > 0: min of m and m' is m'; A < 0: the greater of them is m
    assert values.flatten().tolist() == pytest.approx(
        [-(1.2 + 1.05) / 2, -(0.8 + 1.05) / 2, (1.5 + s) / 2, (0.8 + s) / 2]
    )
    # of m' only the unclipped branch learns, at 0.8 the clip's edge; of m both: r and s, halved
    assert gradient.flatten().tolist()[0] == 0
    assert gradient.flatten().tolist()[2:] == pytest.approx([(1.5 + s) / 2, (0.8 + s) / 2])


def test_uncertain_tokens_use_the_token_ratio_and_certain_ones_the_sequence_ratio():
    values, _ = learn(HybridRatioClip((9.0, 9.0), (9.0, 9.0)))
    s = sqrt(1.5 * 0.8)
    # entropies 0.2 and 0.8: w 0 and 1; 0.3 and 0.3: w 0
    assert values.flatten().tolist() == pytest.approx([-s, -0.8, s, s])


def test_base_weight_1_is_grpo_and_0_is_gspo_token():
    for even, other in ((1.0, Clip(0.2, 0.2)), (0.0, Clip(3e-4, 4e-4, SequenceTokenRatio()))):
        values, gradient = learn(HybridRatioClip(base_weight=even, entropy_weight=0.0))
        expected, slope = learn(other)
        assert torch.allclose(values, expected)
        assert torch.allclose(gradient, slope)


def test_padding_does_not_affect_the_entropy_scale():
    batch = make_batch(group=[0, 0, 0], length=[1, 0, 2])
    entropy = torch.tensor([[0.5, 9.0], [1.0, 2.0], [2.0, 1.0]])
    expected = torch.tensor([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    assert torch.allclose(minmax_entropy(entropy, batch), expected)


def test_the_default_is_guided_by_entropy_with_the_clips_of_both():
    assert dhpo().loss == HybridRatioClip(
        token_clip=(0.2, 0.2), sequence_clip=(3e-4, 4e-4), base_weight=0.0, entropy_weight=1.0
    )
    assert dhpo().requires.all_signals == {"entropy"}
