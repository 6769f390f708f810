"""Pairs with and without retrieved context, and answers whose thoughts are masked."""

import asyncio
from dataclasses import replace
from math import log
from typing import Any

import pytest
import torch

from grupo.core.types import Task
from grupo.methods.dpo import dpo
from grupo.models.causal_lm import CausalLM
from grupo.rollouts.samplers import ContextPairs, OnlyAnswerTokens, PreferencePairs
from grupo.testing.batches import make_batch, perturb_logp
from grupo.training.update.collate import collate
from grupo.util.event_loop import run_coroutine
from tests.helpers import tiny_lm
from tests.helpers.scripted_actor import TASK, Once, Script


class Writer(Script):
    """A scripted actor whose rollouts can be moved behind another prompt."""

    def with_prompt(self, rollout, prompt):
        (_, response), *rest = rollout.turns
        return replace(rollout, turns=((prompt, replace(response, off_context=True)), *rest))


def knowing(without: str) -> Any:
    """Answers y with context, and the given letter without."""

    def next_letter(context: str, key: int) -> str:
        if context[-1] in "yn":
            return "."
        return "y" if "[" in context else without

    return Writer(next_letter, [])


def pair_of(without: str, **fields):
    sampler = ContextPairs(lambda task: str(task.prompt).lower(), "[{context}]", **fields)
    actor = knowing(without)
    return asyncio.run(sampler(TASK, Once(lambda text: "y" in text), actor)), actor


def test_the_answer_with_context_is_chosen_behind_the_plain_prompt():
    group, actor = pair_of("n")
    chosen, rejected = group.rollouts
    assert sorted(context for context, _ in actor.log) == ["Q", "Q[q]"]
    assert (chosen.text, rejected.text) == ("y.", "n.")
    assert (chosen.turns[0][0], chosen.source) == ("Q", "with_context")
    assert group.rewards == (1.0, 0.0)


def test_a_question_whose_context_does_not_help_has_no_pair():
    assert pair_of("y")[0].rollouts == ()
    assert pair_of("n", margin=1.0)[0].rollouts == ()
    assert len(pair_of("n", margin=0.5)[0].rollouts) == 2


THOUGHT = {"chosen": "ab</think>cd", "rejected": "e</think>fg"}


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    folder = tiny_lm.save_model(tmp_path_factory.mktemp("model"))
    return CausalLM(str(folder), max_new_tokens=12).build()


def batch_of(policy, sampler, columns):
    task = Task("t", "Q", columns=columns)
    group = run_coroutine(sampler(task, Once(), policy.actor(0)))
    return collate([group], policy.encode), group


def test_tokens_up_to_the_end_of_the_thoughts_are_masked(policy):
    _, group = batch_of(policy, OnlyAnswerTokens(PreferencePairs()), THOUGHT)
    for rollout, (thought, answer) in zip(
        group.rollouts, (("ab</think>", "cd"), ("e</think>", "fg")), strict=True
    ):
        (_, first), (_, second) = rollout.turns
        assert (first.text, first.in_loss) == (thought, False)
        assert (second.text, second.in_loss) == (answer, True)
    assert group.rewards == (1.0, 0.0)


def test_an_answer_without_thoughts_is_trained_on_as_a_whole(policy):
    plain = {"chosen": "ab", "rejected": "cd"}
    masked, _ = batch_of(policy, OnlyAnswerTokens(PreferencePairs()), plain)
    whole, _ = batch_of(policy, PreferencePairs(), plain)
    assert torch.equal(masked.mask, whole.mask)


def test_the_last_end_of_thoughts_counts(policy):
    twice = {"chosen": "a</think>b</think>c", "rejected": "d"}
    _, group = batch_of(policy, OnlyAnswerTokens(PreferencePairs()), twice)
    assert [response.text for _, response in group.rollouts[0].turns] == ["a</think>b</think>", "c"]


def test_masked_rows_are_the_rows_of_the_whole_answers(policy):
    """The model reads the same tokens; the log-probabilities of answers are the same."""
    masked, _ = batch_of(policy, OnlyAnswerTokens(PreferencePairs()), THOUGHT)
    whole, _ = batch_of(policy, PreferencePairs(), THOUGHT)
    logp = [policy.signals(batch, ("logp",)).logp for batch in (masked, whole)]
    assert masked.mask.sum().item() == 2 * 3  # two letters and the end token
    torch.testing.assert_close(logp[0][masked.mask], logp[1][masked.mask])


def masked_loss(method, answers, thoughts):
    """The loss of a pair whose tokens have these log-ratios, thoughts masked."""
    batch = make_batch([0, 0], [1.0, 0.0], length=[3, 3], logp=-1.0)
    batch = replace(batch, mask=torch.tensor([[False, True, True]] * 2))
    deltas = [[thought, *answer] for thought, answer in zip(thoughts, answers, strict=True)]
    pi = perturb_logp(batch, deltas)
    return (method.aggregation(batch) * method.loss(pi, batch)).sum().item()


def test_changing_thoughts_leaves_a_masked_loss_unchanged():
    answers = [(0.5, 0.5), (0.0, -0.5)]
    losses = [masked_loss(dpo(1.0), answers, thoughts) for thoughts in ((0, 0), (3, -2), (-1, 4))]
    # h = 1 and -1/2: -log sigmoid(3/2)
    assert losses == pytest.approx([log(1 + 2.718281828459045**-1.5)] * 3)
