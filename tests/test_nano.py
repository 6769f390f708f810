"""The one-file example: the same gradient as the library, and it learns."""

import importlib.util
from dataclasses import replace

import pytest
import torch

from grupo.catalogue import find_entry
from grupo.core.batch import Batch, SignalDict, Signals
from grupo.methods.grpo import grpo
from tests.helpers.paths import ROOT

FILE = ROOT / "examples" / "nano.py"
P, G, T = 3, 4, 6


@pytest.fixture(scope="module")
def nano():
    spec = importlib.util.spec_from_file_location("nano", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ragged_batch():
    random = torch.Generator().manual_seed(5)

    def logp():
        return torch.rand(P * G, T, generator=random, dtype=torch.float64).log()

    length = torch.randint(1, T + 1, (P * G, 1), generator=random)
    batch = Batch.of(
        torch.rand(P * G, generator=random, dtype=torch.float64),
        torch.arange(P).repeat_interleave(G),
        rollout=torch.arange(P * G),
        mask=torch.arange(T) < length,
        old_logp=logp(),
        seen=SignalDict({"logp@ref": logp()}),
    )
    return batch, logp()


def test_its_gradient_is_the_library_s(nano):
    batch, start = ragged_batch()
    method = grpo(group_size=G, clip_eps=0.2, kl_coef=0.04)
    credited = batch.with_advantage(method.advantage)
    ours = start.clone().requires_grad_()
    loss = (method.aggregation(credited) * method.loss(Signals(logp=ours), credited)).sum()
    loss.backward()

    advantage = nano.advantages(batch.reward.view(P, G)).flatten()
    theirs = start.clone().requires_grad_()
    said = nano.loss_of(
        theirs,
        batch.old_logp,
        batch.signals["logp@ref"],
        batch.mask,
        advantage,
        clip_eps=0.2,
        kl_coef=0.04,
    )
    said.backward()

    assert said.item() == pytest.approx(loss.item(), abs=1e-10)
    assert ours.grad is not None
    assert theirs.grad is not None
    assert ours.grad.abs().max() > 0.01
    assert (ours.grad - theirs.grad).abs().max() < 1e-10


def test_what_lies_after_the_end_may_be_anything(nano):
    batch, start = ragged_batch()
    wild = replace(batch, old_logp=batch.old_logp.masked_fill(~batch.mask, -1e4))
    advantage = nano.advantages(batch.reward.view(P, G)).flatten()
    losses = [
        nano.loss_of(start, b.old_logp, b.signals["logp@ref"], b.mask, advantage).item()
        for b in (batch, wild)
    ]
    assert losses[0] == losses[1]


def test_rewards_are_the_share_of_places_that_are_right(nano):
    a, b, stop = 0, 1, nano.STOP
    asked = torch.tensor([[a, b, stop, stop]] * 4)
    said = torch.tensor(
        [[a, b, stop, a, a], [a, stop, a, a, a], [b, b, b, b, b], [stop, b, a, a, a]]
    )
    acted = torch.tensor(
        [[1, 1, 1, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]]
    ).bool()
    # a b stop: all of 3; a stop: 1 of 3; b b b b b: 1 of 5; stop: 0 of 3
    reward = nano.reward_of(asked, said, acted)
    assert reward.tolist() == pytest.approx([1, 1 / 3, 1 / 5, 0])


def test_an_answer_ends_at_its_first_stop(nano):
    said, acted = nano.answer(nano.Transformer(), nano.questions(50))
    for letters, mask in zip(said.tolist(), acted.tolist(), strict=True):
        length = letters.index(nano.STOP) + 1 if nano.STOP in letters else nano.T
        assert mask == [True] * length + [False] * (nano.T - length)


def test_it_learns_and_a_flipped_sign_does_not(nano):
    lines = []
    rewards = nano.train(max_steps=30, log=lines.append)
    assert len(lines) == 30
    assert rewards[0] < 0.2
    assert sum(rewards[-5:]) / 5 > 0.8
    flipped = nano.train(max_steps=30, advantage_fn=lambda r: -nano.advantages(r), log=lines.append)
    assert max(flipped) < 0.2


def test_it_is_short_and_needs_nothing_of_ours():
    text = FILE.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 200
    assert "import grupo" not in text
    assert "from grupo" not in text
    assert "one-file example" in find_entry("grpo").checked
