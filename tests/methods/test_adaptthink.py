"""AdaptThink: the numbers of its reward and loss, and its sampler."""

import asyncio
from collections import Counter
from dataclasses import replace
from math import exp, log, nan

import pytest
import torch

from grupo.core.batch import SignalDict, Signals
from grupo.methods.adaptthink import NoThinkBonus, adaptthink
from grupo.rollouts.samplers import ChosenStart, GroupSampler, WithColumnTerm
from grupo.testing.batches import make_batch
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import TASK, Once, script


def test_advantage_is_the_gain_over_the_reference_with_a_bonus_without_thinking():
    terms = {"reference": [0.5] * 4, "start": [0.0, 0.0, 1.0, 1.0]}
    batch = make_batch(group=[0] * 4, reward=[1.0, 0.0, 1.0, 0.0], reward_terms=terms)
    assert NoThinkBonus(0.05)(batch.reward, batch).tolist() == pytest.approx(
        [0.55, -0.45, 0.5, -0.5]
    )


def test_loss_of_an_answer_without_thinking_by_hand():
    old = torch.tensor([[log(0.5), -1.0]], dtype=torch.float64)
    batch = replace(make_batch(group=[0], length=[2], advantage=[0.55]), old_logp=old)
    method = adaptthink()
    pi = Signals(logp=torch.tensor([[-0.1, -1.0]], dtype=torch.float64))
    ratio = exp((-0.1 - log(0.5)) / 2)
    assert ratio == pytest.approx(1.3452, abs=1e-4)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum().item()
    assert loss == pytest.approx(-0.66)  # min(1.3452 x 0.55, 1.2 x 0.55)


def test_loss_of_two_rollouts_is_their_mean():
    batch = make_batch(group=[0, 0], length=[2, 4], advantage=[1.0, -0.5])
    method = adaptthink()
    loss = (method.aggregation(batch) * method.loss(Signals(logp=batch.old_logp), batch)).sum()
    assert loss.item() == pytest.approx((-1.0 + 0.5) / 2)


def share_without_thinking(seed, accuracy, steps=150, rollouts=128, length=16):
    """The policy's share of answers without thinking after training; all other tokens are fixed.

    Modes are drawn evenly; the reference is the accuracy of thinking, the second of the two.
    """
    rng = torch.Generator().manual_seed(seed)
    theta = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([theta], lr=0.05)
    method = adaptthink()
    start = make_batch(group=[0] * rollouts, length=[length] * rollouts, logp=-1.0)
    first = torch.arange(length) == 0
    start = replace(start, old_logp=torch.where(first, log(0.5), start.old_logp))
    for _ in range(steps):
        mode = torch.randint(2, (rollouts,), generator=rng)
        chance = torch.tensor(accuracy, dtype=torch.float64)[mode]
        reward = torch.bernoulli(chance, generator=rng)
        reference = torch.full_like(reward, accuracy[1])
        terms = SignalDict(start=mode.double(), reference=reference)
        batch = replace(start, reward=reward, reward_terms=terms).with_advantage(method.advantage)
        logp = torch.where(first, theta.log_softmax(0)[mode, None], batch.old_logp)
        loss = (method.aggregation(batch) * method.loss(Signals(logp=logp), batch)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return theta.softmax(0)[0].item()


@pytest.mark.slow
def test_thinking_dies_out_where_it_does_not_pay_and_stays_where_it_does():
    equal = [share_without_thinking(seed, (0.9, 0.9)) for seed in range(8)]
    better = [share_without_thinking(seed, (0.3, 0.9)) for seed in range(8)]
    assert min(equal) > 0.9
    assert max(better) < 0.1


def test_starts_are_drawn_with_their_probabilities_and_learned():
    sampler = ChosenStart(400, starts=(("ab", 0.25), ("c", 0.75)))
    group = asyncio.run(sampler(TASK, Once(), script(lambda context, key: ".")))
    counts = Counter(rollout.text for rollout in group.rollouts)
    assert set(counts) == {"ab.", "c."}
    assert counts["ab."] / 400 == pytest.approx(0.25, abs=0.07)
    for rollout in group.rollouts:
        start = rollout.turns[0][1]
        assert rollout.reward_terms["start"] == float(rollout.text == "c.")
        assert start.in_loss
        assert sum(start.logp) == pytest.approx(log(0.25 if start.text == "ab" else 0.75))


@pytest.mark.parametrize(
    "starts", [(), (("a", 0.5),), (("a", 0.5), ("a", 0.5)), (("a", 2), ("b", -1))]
)
def test_starts_without_a_distribution_are_refused(starts):
    with pytest.raises(ConfigError, match="starts"):
        ChosenStart(starts=starts)


def test_a_column_becomes_a_reward_term_of_every_rollout():
    sampler = WithColumnTerm(GroupSampler(2), "rate", "reference")
    actor = script(lambda context, key: ".")
    group = asyncio.run(sampler(replace(TASK, columns={"rate": 0.25}), Once(), actor))
    assert [rollout.reward_terms["reference"] for rollout in group.rollouts] == [0.25, 0.25]
    for value in ("high", None, nan):
        with pytest.raises(ConfigError, match="'rate' of t is"):
            sampler.validate_tasks([replace(TASK, columns={"rate": value})])


def test_defaults_match_the_release():
    sampler = adaptthink().sampler
    assert sampler == WithColumnTerm(
        ChosenStart(16, starts=(("</think>", 0.5), ("Alright", 0.5))), "pass_rate"
    )
    assert adaptthink().advantage == NoThinkBonus(0.05)
