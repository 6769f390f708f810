"""The one-file example: the same gradient as the library, and it learns."""

import importlib.util
from dataclasses import replace

import pytest
import torch

from grupo.catalogue.search import find_entry
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
        signals=SignalDict({"logp@ref": logp()}),
    )
    return batch, logp()


def test_the_loss_and_its_gradient_equal_those_of_the_library(nano):
    batch, start = ragged_batch()
    method = grpo(group_size=G, clip_eps=0.2, kl_coef=0.04)
    scored = batch.with_advantage(method.advantage)
    library_logp = start.clone().requires_grad_()
    loss = (method.aggregation(scored) * method.loss(Signals(logp=library_logp), scored)).sum()
    loss.backward()

    advantage = nano.advantages(batch.reward.view(P, G)).flatten()
    nano_logp = start.clone().requires_grad_()
    nano_loss = nano.grpo_loss(
        nano_logp,
        batch.old_logp,
        batch.signals["logp@ref"],
        batch.mask,
        advantage,
        clip_eps=0.2,
        kl_coef=0.04,
    )
    nano_loss.backward()

    assert nano_loss.item() == pytest.approx(loss.item(), abs=1e-10)
    assert library_logp.grad is not None
    assert nano_logp.grad is not None
    assert library_logp.grad.abs().max() > 0.01
    assert (library_logp.grad - nano_logp.grad).abs().max() < 1e-10


def test_values_after_the_stop_token_do_not_matter(nano):
    batch, start = ragged_batch()
    changed = replace(batch, old_logp=batch.old_logp.masked_fill(~batch.mask, -1e4))
    advantage = nano.advantages(batch.reward.view(P, G)).flatten()
    losses = [
        nano.grpo_loss(start, b.old_logp, b.signals["logp@ref"], b.mask, advantage).item()
        for b in (batch, changed)
    ]
    assert losses[0] == losses[1]


def test_the_reward_is_the_fraction_of_correct_positions(nano):
    a, b, stop = 0, 1, nano.STOP_TOKEN
    prompts = torch.tensor([[a, b, stop, stop]] * 4)
    answers = torch.tensor(
        [[a, b, stop, a, a], [a, stop, a, a, a], [b, b, b, b, b], [stop, b, a, a, a]]
    )
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]]).bool()
    # a b stop: all of 3; a stop: 1 of 3; b b b b b: 1 of 5; stop: 0 of 3
    reward = nano.answer_reward(prompts, answers, mask)
    assert reward.tolist() == pytest.approx([1, 1 / 3, 1 / 5, 0])


def test_an_answer_ends_at_its_first_stop(nano):
    answers, mask = nano.sample_answers(nano.Transformer(), nano.random_prompts(50))
    for tokens, row in zip(answers.tolist(), mask.tolist(), strict=True):
        stop = (
            tokens.index(nano.STOP_TOKEN) + 1 if nano.STOP_TOKEN in tokens else nano.ANSWER_LENGTH
        )
        assert row == [True] * stop + [False] * (nano.ANSWER_LENGTH - stop)


@pytest.mark.slow
def test_it_learns_and_negated_advantages_do_not(nano):
    lines = []
    rewards = nano.train(max_steps=30, log=lines.append)
    assert len(lines) == 30
    assert rewards[0] < 0.2
    assert sum(rewards[-5:]) / 5 > 0.8
    negated = nano.train(max_steps=30, advantage_fn=lambda r: -nano.advantages(r), log=lines.append)
    assert max(negated) < 0.2


def test_it_is_short_and_does_not_import_the_library():
    text = FILE.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 200
    assert "import grupo" not in text
    assert "from grupo" not in text
    assert "one-file example" in find_entry("grpo").checked
