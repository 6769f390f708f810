"""Signals per action do not depend on padding, order or micro-batches."""

from dataclasses import replace

import pytest
import torch

from grupo.core.types import Response, Rollout
from grupo.inference.sampling_params import Sampling
from grupo.kernels.llama.model_weights import LlamaWeights
from grupo.kernels.packing.prefix_trie import pack
from grupo.models.causal_lm import CausalLM
from grupo.models.lora import Lora
from grupo.util.errors import MissingSignalError
from tests.helpers.adapters import randomize_lora_b
from tests.helpers.fast_cases import fast_cases
from tests.helpers.tiny_lm import (
    answer_batch,
    batch_of,
    build_cached,
    dense_attention,
    save_model,
    two_turn_rollouts,
)

NAMES = ("logp", "entropy")


def gradients(policy, batch) -> list[torch.Tensor]:
    """Gradients of a loss with another weight per action, accumulated over micro-batches."""
    weight = torch.linspace(-1, 1, batch.mask.numel()).view(batch.mask.shape)
    for parameter in policy.parameters():
        parameter.grad = None
    for rows in policy.microbatches(batch):
        pi = policy.signals(batch.select_rows(rows), NAMES)
        (weight[rows] * (pi.logp + 0.5 * pi.entropy)).sum().backward()
    return [p.grad for p in policy.parameters() if p.grad is not None]


@pytest.mark.parametrize(
    "sampling", fast_cases(1, [Sampling(), Sampling(0.8, 0.9, 20)]), ids=["plain", "cut"]
)
@pytest.mark.parametrize("max_tokens", [1, 64])
def test_microbatch_size_changes_neither_values_nor_gradients(llama, max_tokens, sampling):
    whole = build_cached(replace(llama, sampling=sampling))
    parts = build_cached(replace(llama, sampling=sampling, tokens_per_microbatch=max_tokens))
    batch = answer_batch(whole)
    assert len(list(whole.microbatches(batch))) == 1 < len(list(parts.microbatches(batch)))
    for rows in parts.microbatches(batch):
        actual = parts.signals(batch.select_rows(rows), NAMES)
        expected = whole.signals(batch, NAMES)
        torch.testing.assert_close(actual.logp, expected.logp[rows], rtol=0, atol=2e-5)
        torch.testing.assert_close(actual.entropy, expected.entropy[rows], rtol=0, atol=2e-5)
    for actual, expected in zip(gradients(parts, batch), gradients(whole, batch), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-4)


def test_microbatches_hold_every_row_once_within_their_size(llama):
    policy = build_cached(replace(llama, tokens_per_microbatch=64))
    batch = answer_batch(policy)
    microbatches = list(policy.microbatches(batch))
    assert sorted(torch.cat(microbatches).tolist()) == list(range(12))
    token, length = batch.inputs["token"], batch.inputs["length"]
    sizes = [len(pack(token[rows], length[rows], min_saved=1).token) for rows in microbatches]
    assert max(sizes) <= 64 < sum(sizes) < int(length.sum())


def test_only_requested_signals_are_returned(llama):
    policy = build_cached(llama)
    batch = answer_batch(policy)
    assert list(policy.signals(batch)) == ["logp"]
    assert list(policy.signals(batch, ("entropy", "logp@ref"))) == ["logp", "entropy"]
    with pytest.raises(MissingSignalError, match="'entropy' was not measured"):
        _ = policy.signals(batch).entropy


def test_entropy_matches_its_definition(llama):
    policy = build_cached(llama)
    batch = answer_batch(policy)
    row, start = batch.inputs["token"][:1], int(batch.inputs["start"][0])
    with torch.no_grad(), dense_attention(policy) as model:
        p = model(row).logits[0].softmax(-1)
    entropy = -(p * p.log()).sum(-1)
    values = policy.signals(batch, NAMES).entropy[0]
    for i in range(int(batch.mask[0].sum())):
        assert values[i].item() == pytest.approx(entropy[start + i - 1].item(), abs=1e-5)


def test_signals_of_observations_and_padding_are_zero(llama):
    policy = build_cached(llama)
    batch = batch_of(policy, two_turn_rollouts(policy))
    pi = policy.signals(batch, NAMES)
    assert (pi.logp[~batch.mask] == 0).all()
    assert (pi.entropy[~batch.mask] == 0).all()
    assert (pi.logp[batch.mask] < 0).all()


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_batch_without_actions_has_no_gradient(folders, family):
    policy = CausalLM(folders[family], max_new_tokens=9).build()
    prompt = policy.encode_observation(Rollout(), "Hi")
    batch = batch_of(policy, [Rollout((("Hi", Response((), (), prompt)),))] * 2)
    assert policy.signals(batch, NAMES).logp.shape == (2, 0)
    batch = batch_of(policy, [Rollout((("Hi", Response((5,), (-1.0,), prompt)),))])
    masked = replace(batch, mask=~batch.mask)
    policy.signals(masked, NAMES).logp.sum().backward()
    assert all(p.grad is None or not p.grad.any() for p in policy.parameters())


@pytest.mark.parametrize("lora", fast_cases(1, [None, Lora(4)]), ids=["full", "lora"])
@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma2"])
def test_gradient_checkpointing_changes_no_gradient(folders, family, lora, monkeypatch):
    monkeypatch.setattr(LlamaWeights, "is_plain", False)  # the PyTorch modules in both cases
    spec = CausalLM(folders[family], max_new_tokens=8, lora=lora)
    plain, checkpointed = spec.build(), replace(spec, gradient_checkpointing=True).build()
    randomize_lora_b(plain.module)
    checkpointed.load(plain.weights())
    batch = answer_batch(plain)
    grads, expected_grads = gradients(checkpointed, batch), gradients(plain, batch)
    assert len(grads) == len(expected_grads) > 0
    for actual, expected in zip(grads, expected_grads, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
    assert answer_batch(checkpointed).inputs["token"].tolist() == batch.inputs["token"].tolist()


@pytest.mark.parametrize(
    ("family", "dropout"),
    [
        ("llama", {"attention_dropout": 0.5}),
        ("gpt2", {"resid_pdrop": 0.5, "attn_pdrop": 0.5, "embd_pdrop": 0.5}),
    ],
)
def test_dropout_of_the_model_is_off(tmp_path, family, dropout):
    folder = save_model(tmp_path, family, **dropout)
    policy = CausalLM(str(folder), max_new_tokens=8, gradient_checkpointing=True).build()
    batch = answer_batch(policy)
    torch.testing.assert_close(policy.signals(batch).logp, batch.old_logp, rtol=0, atol=2e-5)


def test_parameters_are_the_whole_model_or_the_adapters(folders):
    full, lora = (
        build_cached(CausalLM(folders["llama"], max_new_tokens=8)),
        build_cached(CausalLM(folders["llama"], max_new_tokens=8, lora=Lora(4))),
    )
    assert sum(p.numel() for p in full.parameters()) == full.hf_model.num_parameters()
    sizes = [(32, 32), (32, 16), (32, 16), (32, 32), (32, 64), (32, 64), (64, 32)]
    assert sum(p.numel() for p in lora.parameters()) == 2 * 4 * sum(i + o for i, o in sizes)
    assert all("lora_" in name for name in lora.weights())


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_fresh_adapters_do_not_change_logp(folders, family):
    full, lora = (
        build_cached(CausalLM(folders[family], max_new_tokens=8, lora=x)) for x in (None, Lora(4))
    )
    batch = answer_batch(full)
    torch.testing.assert_close(lora.signals(batch).logp, full.signals(batch).logp)


def test_adapters_of_the_lm_head_affect_generation_and_evaluation(folders):
    policy = CausalLM(
        folders["llama"], max_new_tokens=12, lora=Lora(4, targets=("lm_head",))
    ).build()
    before = answer_batch(policy).inputs["token"]
    randomize_lora_b(policy.module)
    batch = answer_batch(policy)
    assert batch.inputs["token"].tolist() != before.tolist()
    torch.testing.assert_close(policy.signals(batch).logp, batch.old_logp, rtol=0, atol=2e-5)


def test_gradient_step_raises_the_loglikelihood_to_first_order(llama):
    policy = llama.build()
    batch = answer_batch(policy)
    before = policy.signals(batch).logp.sum()
    before.backward()
    squared_norm = sum(p.grad.square().sum() for p in policy.parameters())
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(parameter.grad, alpha=1e-7)
    rise = policy.signals(batch).logp.sum() - before
    assert rise.item() == pytest.approx(1e-7 * squared_norm.item(), rel=0.2)
