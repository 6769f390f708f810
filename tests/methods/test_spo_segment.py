"""SPO-chain: the advantages and masks of one answer by hand, and a task of three steps."""

import asyncio
from dataclasses import replace
from math import log

import pytest
import torch

from grupo.core.batch import Signals
from grupo.methods.grpo import grpo
from grupo.methods.spo_segment import SegmentAdvantage, UnlikelyTokenMean, spo_segment
from grupo.rollouts.samplers import AtFractions, AtUnlikelyItems, GroupSampler, PrefixValue
from grupo.testing.batches import make_batch
from grupo.training.update.collate import collate
from tests.helpers.scripted_actor import TASK, Once, script

PROBABILITIES = (0.95, 0.5, 0.99, 0.6, 0.99, 0.4)
CUTS = (0.0, 1.0, 0.0, 1.0, 0.0, 1.0)
VALUES = (0.0, 0.2, 0.0, 0.6, 0.0, 0.9)


def answer_of_six(reward=1.0, cuts=CUTS, values=VALUES):
    signals = {"step/prefix_cut": [cuts], "step/prefix_value": [values]}
    batch = make_batch(group=[0], reward=[reward], length=[6], signals=signals)
    old = torch.tensor([[log(p) for p in PROBABILITIES]], dtype=torch.float64)
    return replace(batch, old_logp=old)


def test_advantages_of_segments_are_differences_of_values():
    batch = answer_of_six()
    raw = SegmentAdvantage()(batch.reward, batch)[0].tolist()
    assert raw == pytest.approx([0.0, 0.4, 0.4, 0.3, 0.3, 0.1])
    kept = UnlikelyTokenMean(0.9)(batch)[0]
    assert kept.tolist() == pytest.approx([0.0, 1 / 3, 0.0, 1 / 3, 0.0, 1 / 3])
    masked = [a * bool(w) for a, w in zip(raw, kept.tolist(), strict=True)]
    assert masked == pytest.approx([0.0, 0.4, 0.0, 0.3, 0.0, 0.1])


def test_the_end_of_the_prompt_is_the_base_of_the_first_segment():
    batch = answer_of_six(0.0, (1.0, 0.0, 0.0, 1.0, 0.0, 0.0), (0.5, 0.0, 0.0, 0.25, 0.0, 0.0))
    advantage = SegmentAdvantage()(batch.reward, batch)[0].tolist()
    assert advantage == pytest.approx([-0.25] * 3 + [-0.25] * 3)


def test_an_answer_without_cuts_has_no_advantage():
    batch = answer_of_six(1.0, (0.0,) * 6, (0.0,) * 6)
    assert SegmentAdvantage()(batch.reward, batch)[0].tolist() == [0.0] * 6


def test_the_loss_is_the_mean_over_unlikely_tokens():
    batch = answer_of_six()
    method = spo_segment()
    batch = batch.with_advantage(SegmentAdvantage())
    loss = (method.aggregation(batch) * method.loss(Signals(logp=batch.old_logp), batch)).sum()
    assert loss.item() == pytest.approx(-(0.4 + 0.3 + 0.1) / 3)


def test_advantages_are_whitened_over_unlikely_tokens():
    # 0.4, 0.3 and 0.1: mean 4/15, variance ((2/15)^2 + (1/30)^2 + (1/6)^2) / 2 = 7/300
    advantage = answer_of_six().with_advantage(spo_segment().advantage).advantage[0].tolist()
    std = (7 / 300) ** 0.5
    expected = [0.0, 2 / 15 / std, 0.0, 1 / 30 / std, 0.0, -1 / 6 / std]
    assert advantage == pytest.approx(expected, abs=1e-6)


def three_steps(context, key):
    """Three letters, each "a" or "b" by the stream, of which only the second one counts."""
    position = len(context) - 1
    return "." if position == 3 else "ab"[(key >> (7 * position)) % 2]


def second_step_right(text):
    return float(text[1] == "b")


@pytest.mark.slow
def test_steps_that_decide_nothing_have_less_than_a_tenth_of_the_advantage():
    at = AtFractions((0.0, 0.25, 0.5, 0.75))
    sampler = PrefixValue(GroupSampler(8), at, completions=600)
    group = asyncio.run(sampler(TASK, Once(second_step_right), script(three_steps)))
    batch = collate([group], len)
    size = batch.with_advantage(SegmentAdvantage()).advantage.abs().mean(0).tolist()
    first, second, third, end = size
    assert second == pytest.approx(0.5, abs=0.08)  # from 1/2 to 0 or to 1
    assert max(first, third, end) < 0.1 * second
    first, second, third, _ = batch.with_advantage(grpo().advantage).advantage.abs().mean(0)
    assert first == second == third > 0.9  # GRPO gives the same to every step


def test_defaults_match_the_release():
    sampler = spo_segment().sampler
    assert sampler == PrefixValue(GroupSampler(8), AtUnlikelyItems(0.9, 5), 9)
