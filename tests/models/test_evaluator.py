"""However rows are read they say and teach the same, and what they share is read once."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from grupo.core.batch import Batch
from grupo.kernels.packing.prefix_trie import pack
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.evaluator import PackedEvaluator, PaddedEvaluator
from tests.helpers.conversations import conversation, counted, shuffled
from tests.helpers.tiny_lm import FAMILIES, PROMPTS, answers, batch_of, built

NAMES = ("logp", "entropy")
LONG = "What would you say of this question?"


def row_by_row(spec: CausalLM) -> CausalPolicy:
    """The policy, made to read every row on its own, by the attention of transformers."""
    policy = spec.build()
    assert isinstance(policy.evaluator, PackedEvaluator)
    policy.hf_model.set_attn_implementation("eager")
    policy.evaluator = PaddedEvaluator(policy.hf_model)
    return policy


def in_turns(policy: CausalPolicy) -> Batch:
    """Conversations that part at the first answer, or at the second."""
    asked = LONG, "Much.", "And why?"
    several = [(*asked, "No."), (*asked, "Because"), (LONG, "Little"), (LONG, "", "Go on", "Oh")]
    return batch_of(policy, [conversation(policy, *turns) for turns in (*several, ("Hi", "Ho"))])


def learned(policy: CausalPolicy, batch: Batch) -> list[Tensor]:
    """Log-probabilities and entropies, and the gradients of weighing each differently."""
    policy.module.zero_grad()
    weight = torch.linspace(-1, 1, batch.mask.numel()).view(batch.mask.shape)
    pi = policy.signals(batch, NAMES)
    (weight * (pi.logp + 0.5 * pi.entropy)).sum().backward()
    grads = [p.grad for p in policy.parameters() if p.grad is not None]
    return [pi.logp.detach(), pi.entropy.detach(), *grads]


@pytest.mark.parametrize("of", [answers, in_turns], ids=["groups", "turns"])
@pytest.mark.parametrize("family", FAMILIES)
def test_rows_that_share_beginnings_are_read_as_if_each_were_alone(folders, family, of):
    spec = CausalLM(folders[family], max_new_tokens=12)
    policy, alone = built(spec), row_by_row(spec)
    batch = of(policy)
    with counted(policy) as shared, counted(alone) as every:
        pairs = zip(learned(policy, batch), learned(alone, batch), strict=True)
    assert sum(shared) < 0.7 * sum(every)
    for ours, theirs in pairs:
        assert ((ours - theirs).abs().max() / theirs.abs().max()) < 1e-5


def test_answers_to_one_prompt_read_it_once(llama):
    policy = built(llama)
    texts = ("yes", "no", "maybe not", "?")
    batch = batch_of(policy, [conversation(policy, LONG, text) for text in texts])
    with counted(policy) as counts:
        policy.signals(batch, NAMES)
    assert counts == [len(LONG) + sum(len(text) - 1 for text in texts)]  # but for the last of each


def test_a_second_turn_reads_the_first_once(llama):
    policy = built(llama)
    both = [(LONG, "So.", "And now, what else?", text) for text in ("x", "yz")]
    batch = batch_of(policy, [conversation(policy, *turns) for turns in both])
    with counted(policy) as counts:
        policy.signals(batch)
    assert counts == [sum(map(len, both[0][:3])) + 1]  # "y": nothing comes after the last


def test_rows_of_one_prompt_stay_together_where_the_budget_allows(llama):
    prompts = [letter * 20 for letter in "ABC"]
    policy = built(
        replace(llama, tokens_per_microbatch=20 + 5 * 4 + 3)
    )  # one prompt with its answers, no more
    batch, whose = shuffled(policy, prompts, 5)
    found = [whose[rows].unique().tolist() for rows in policy.microbatches(batch)]
    assert sorted(found) == [[0], [1], [2]]
    with counted(policy) as counts:
        for rows in policy.microbatches(batch):
            policy.signals(batch.select_rows(rows))
    assert counts == [20 + 5 * 3] * 3


def test_where_the_budget_parts_them_each_part_reads_the_prompt(llama):
    policy = built(replace(llama, tokens_per_microbatch=20 + 2 * 4))
    batch, _ = shuffled(policy, ["A" * 20], 5)
    assert sorted(len(rows) for rows in policy.microbatches(batch)) == [1, 2, 2]


@pytest.mark.parametrize("budget", [1, 30, 64, 10_000])
@pytest.mark.parametrize("reading", [PackedEvaluator, PaddedEvaluator])
def test_micro_batches_hold_every_row_once_and_many_no_more_than_the_budget(llama, reading, budget):
    policy = built(llama)
    batch, _ = shuffled(policy, PROMPTS, 4)
    token, length = batch.inputs["token"], batch.inputs["length"]
    chosen = list(reading(policy.hf_model).together(token, length, budget))
    assert sorted(torch.cat(chosen).tolist()) == list(range(16))
    for rows in (rows for rows in chosen if len(rows) > 1):
        padded = len(rows) * int(length[rows].max())
        shared = len(pack(token[rows], length[rows], min_saved=1).token)
        assert (padded if reading is PaddedEvaluator else shared) <= budget


def test_what_is_too_short_to_be_shared_counts_as_often_as_it_is_read(llama):
    policy = built(replace(llama, tokens_per_microbatch=1 + 20 + 10))
    texts = ("A" * 11, "A" * 10 + "BBBBBBBBBB", "C")  # 10 in common: too few to be shared
    batch = batch_of(policy, [conversation(policy, text[0], text[1:] + "!") for text in texts])
    with counted(policy) as counts:
        for rows in policy.microbatches(batch):
            policy.signals(batch.select_rows(rows))
    assert max(counts) <= policy.tokens_per_microbatch
