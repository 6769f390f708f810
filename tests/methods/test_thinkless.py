"""DeGRPO: rewards of four rollouts and a separate weight of the first token."""

from math import exp

import pytest
import torch

from grupo.algo.losses import KL, Clip
from grupo.methods.thinkless import ControlTokenMean, ShortThinkingReward, thinkless
from grupo.testing.batches import make_batch, perturb_logp


def test_correct_answer_has_lower_reward_after_thinking():
    parts = {"correct": [1.0, 1.0, 0.0, 0.0], "think": [0.0, 1.0, 1.0, 0.0]}
    batch = make_batch(group=[0] * 4, reward_terms=parts)
    assert ShortThinkingReward(0.5)(batch.reward, batch).tolist() == [1.0, 0.5, -1.0, -1.0]
    advantage = batch.with_advantage(thinkless().advantage).advantage[:, 0].tolist()
    assert advantage == [1.125, 0.625, -0.875, -0.875]  # mean -1/8, no std


def test_control_token_and_response_tokens_are_averaged_separately():
    weight = ControlTokenMean(0.001)(make_batch(group=[0, 0], length=[4, 2]))
    loss = torch.tensor([[1.0, 0.5, 0.5, 0.5], [3.0, 1.0, 9.0, 9.0]], dtype=torch.float64)
    assert weight.tolist() == [[0.0005, 0.25, 0.25, 0.25], [0.0005, 0.25, 0.0, 0.0]]
    assert (weight * loss).sum().item() == pytest.approx(0.001 * 2 + 2.5 / 4)


def test_single_action_rows_have_no_response_term():
    assert ControlTokenMean(0.5)(make_batch(group=[0, 0])).tolist() == [[0.25], [0.25]]


def test_loss_matches_released_formula():
    # mean loss: -0.15 over first actions, -0.3 over the remaining ones
    batch = make_batch(group=[0, 0], length=[3, 2], advantage=[0.75, -0.75])
    pi = perturb_logp(batch, [[0.5, 0.1, 0.7], [-0.3, 0.1, 0.0]])
    method = thinkless(kl_coef=0.0)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    assert loss.item() == pytest.approx(-0.30015, abs=1e-7)
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    # clipped where the ratio has left 0.8 to 1.2 on the side of A
    assert gradient[0].tolist() == pytest.approx([0.0, -0.75 * exp(0.1) / 3, 0.0])
    assert gradient[1].tolist() == pytest.approx([0.0, 0.75 * exp(0.1) / 3, 0.0])


def test_defaults_match_paper():
    assert thinkless().loss == Clip(0.2, 0.2) + 0.001 * KL()
