"""Packed and padded evaluation agree, and packed evaluation computes shared prefixes once."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from grupo.core.batch import Batch
from grupo.kernels.packing.prefix_trie import pack
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.evaluator import PackedEvaluator, PaddedEvaluator
from tests.helpers.conversations import conversation, count_tokens, shuffled_batch
from tests.helpers.tiny_lm import FAMILIES, PROMPTS, answer_batch, batch_of, build_cached

NAMES = ("logp", "entropy")
LONG = "What would you say of this question?"


def build_padded(spec: CausalLM) -> CausalPolicy:
    """The policy with a `PaddedEvaluator` and the attention of transformers."""
    policy = spec.build()
    assert isinstance(policy.evaluator, PackedEvaluator)
    policy.hf_model.set_attn_implementation("eager")
    policy.evaluator = PaddedEvaluator(policy.hf_model)
    return policy


def conversation_batch(policy: CausalPolicy) -> Batch:
    """Conversations that differ from the first answer on, or from the second."""
    shared = LONG, "Much.", "And why?"
    several = [(*shared, "No."), (*shared, "Because"), (LONG, "Little"), (LONG, "", "Go on", "Oh")]
    return batch_of(policy, [conversation(policy, *turns) for turns in (*several, ("Hi", "Ho"))])


def values_and_gradients(policy: CausalPolicy, batch: Batch) -> list[Tensor]:
    """Log-probabilities, entropies, and gradients of a loss with another weight per action."""
    policy.module.zero_grad()
    weight = torch.linspace(-1, 1, batch.mask.numel()).view(batch.mask.shape)
    pi = policy.signals(batch, NAMES)
    (weight * (pi.logp + 0.5 * pi.entropy)).sum().backward()
    grads = [p.grad for p in policy.parameters() if p.grad is not None]
    return [pi.logp.detach(), pi.entropy.detach(), *grads]


@pytest.mark.parametrize("make_batch", [answer_batch, conversation_batch], ids=["groups", "turns"])
@pytest.mark.parametrize("family", FAMILIES)
def test_packed_evaluation_matches_padded_evaluation(folders, family, make_batch):
    spec = CausalLM(folders[family], max_new_tokens=12)
    policy, padded = build_cached(spec), build_padded(spec)
    batch = make_batch(policy)
    with count_tokens(policy) as packed_tokens, count_tokens(padded) as padded_tokens:
        actual = values_and_gradients(policy, batch)
        expected = values_and_gradients(padded, batch)
    assert sum(packed_tokens) < 0.7 * sum(padded_tokens)
    for a, b in zip(actual, expected, strict=True):
        assert ((a - b).abs().max() / b.abs().max()) < 1e-5


def test_prompt_of_a_group_is_computed_once(llama):
    policy = build_cached(llama)
    texts = ("yes", "no", "maybe not", "?")
    batch = batch_of(policy, [conversation(policy, LONG, text) for text in texts])
    with count_tokens(policy) as counts:
        policy.signals(batch, NAMES)
    assert counts == [
        len(LONG) + sum(len(text) - 1 for text in texts)
    ]  # without the last token of each


def test_shared_first_turn_is_computed_once(llama):
    policy = build_cached(llama)
    both = [(LONG, "So.", "And now, what else?", text) for text in ("x", "yz")]
    batch = batch_of(policy, [conversation(policy, *turns) for turns in both])
    with count_tokens(policy) as counts:
        policy.signals(batch)
    assert counts == [sum(map(len, both[0][:3])) + 1]  # "y": the last token of a row is not needed


def test_microbatches_keep_rows_of_one_prompt_together(llama):
    prompts = [letter * 20 for letter in "ABC"]
    # room for one prompt with its answers
    policy = build_cached(replace(llama, tokens_per_microbatch=20 + 5 * 4 + 3))
    batch, prompt_index = shuffled_batch(policy, prompts, 5)
    prompts_of = [prompt_index[rows].unique().tolist() for rows in policy.microbatches(batch)]
    assert sorted(prompts_of) == [[0], [1], [2]]
    with count_tokens(policy) as counts:
        for rows in policy.microbatches(batch):
            policy.signals(batch.select_rows(rows))
    assert counts == [20 + 5 * 3] * 3


def test_every_microbatch_of_a_group_includes_the_prompt(llama):
    policy = build_cached(replace(llama, tokens_per_microbatch=20 + 2 * 4))
    batch, _ = shuffled_batch(policy, ["A" * 20], 5)
    assert sorted(len(rows) for rows in policy.microbatches(batch)) == [1, 2, 2]


@pytest.mark.parametrize("max_tokens", [1, 30, 64, 10_000])
@pytest.mark.parametrize("is_padded", [False, True])
def test_microbatches_hold_every_row_once_within_max_tokens(llama, is_padded, max_tokens):
    policy = build_cached(llama)
    evaluator = PaddedEvaluator(policy.hf_model) if is_padded else policy.evaluator
    batch, _ = shuffled_batch(policy, PROMPTS, 4)
    token, length = batch.inputs["token"], batch.inputs["length"]
    microbatches = list(evaluator.microbatches(token, length, max_tokens))
    assert sorted(torch.cat(microbatches).tolist()) == list(range(16))
    for rows in (rows for rows in microbatches if len(rows) > 1):
        padded = len(rows) * int(length[rows].max())
        shared = len(pack(token[rows], length[rows], min_saved=1).token)
        assert (padded if is_padded else shared) <= max_tokens


def test_prefixes_too_short_to_pack_count_for_every_row(llama):
    policy = build_cached(replace(llama, tokens_per_microbatch=1 + 20 + 10))
    texts = ("A" * 11, "A" * 10 + "BBBBBBBBBB", "C")  # 10 in common: too few to pack
    batch = batch_of(policy, [conversation(policy, text[0], text[1:] + "!") for text in texts])
    with count_tokens(policy) as counts:
        for rows in policy.microbatches(batch):
            policy.signals(batch.select_rows(rows))
    assert max(counts) <= policy.tokens_per_microbatch
