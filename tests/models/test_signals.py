"""What a policy says of a batch: per action, whatever the padding, the order and the budget."""

from dataclasses import replace

import pytest
import torch

from grupo.core.errors import MissingSignalError
from grupo.core.types import Action, Rollout
from grupo.inference.sampling_params import Sampling
from grupo.kernels.llama.backend import NativeLlamaBackend
from grupo.kernels.packing.prefix_trie import pack
from grupo.models.causal_lm import CausalLM
from grupo.models.loading import Lora
from tests.helpers.tiny_lm import answers, batch_of, built, dense, plant, two_turns

NAMES = ("logp", "entropy")


def gradients(policy, batch) -> list[torch.Tensor]:
    """Of a loss that weighs every action differently, added up over micro-batches."""
    weight = torch.linspace(-1, 1, batch.mask.numel()).view(batch.mask.shape)
    for parameter in policy.parameters():
        parameter.grad = None
    for rows in policy.micro(batch):
        pi = policy.signals(batch.take(rows), NAMES)
        (weight[rows] * (pi.logp + 0.5 * pi.entropy)).sum().backward()
    return [p.grad for p in policy.parameters() if p.grad is not None]


def with_some_b(policy) -> None:
    """Adapters that do something: B is not zero."""
    with torch.no_grad():
        for name, weight in policy.weights().items():
            if "lora_B" in name:
                weight.normal_(0, 0.2)


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.8, 0.9, 20)], ids=["plain", "cut"])
@pytest.mark.parametrize("budget", [1, 64])
def test_the_micro_batch_changes_neither_values_nor_gradients(llama, budget, sampling):
    whole = built(replace(llama, sampling=sampling))
    parts = built(replace(llama, sampling=sampling, tokens_per_microbatch=budget))
    batch = answers(whole)
    assert len(list(whole.microbatches(batch))) == 1 < len(list(parts.microbatches(batch)))
    for rows in parts.microbatches(batch):
        alone, among = parts.signals(batch.select_rows(rows), NAMES), whole.signals(batch, NAMES)
        torch.testing.assert_close(alone.logp, among.logp[rows], rtol=0, atol=2e-5)
        torch.testing.assert_close(alone.entropy, among.entropy[rows], rtol=0, atol=2e-5)
    for ours, theirs in zip(gradients(parts, batch), gradients(whole, batch), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


def test_micro_batches_hold_every_row_once_and_no_more_than_the_budget(llama):
    policy = built(replace(llama, tokens_per_microbatch=64))
    batch = answers(policy)
    chosen = list(policy.microbatches(batch))
    assert sorted(torch.cat(chosen).tolist()) == list(range(12))
    token, length = batch.inputs["token"], batch.inputs["length"]
    read = [len(pack(token[rows], length[rows], min_saved=1).token) for rows in chosen]
    assert max(read) <= 64 < sum(read) < int(length.sum())


def test_only_what_is_asked_for_is_said(llama):
    policy = built(llama)
    batch = answers(policy)
    assert list(policy.signals(batch)) == ["logp"]
    assert list(policy.signals(batch, ("entropy", "logp@ref"))) == ["logp", "entropy"]
    with pytest.raises(MissingSignalError, match="'entropy' was not measured"):
        _ = policy.signals(batch).entropy


def test_entropy_is_minus_the_sum_of_p_log_p(llama):
    policy = built(llama)
    batch = answers(policy)
    row, start = batch.inputs["token"][:1], int(batch.inputs["start"][0])
    with torch.no_grad(), dense(policy) as plain:
        p = plain(row).logits[0].softmax(-1)
    entropy = -(p * p.log()).sum(-1)
    said = policy.signals(batch, NAMES).entropy[0]
    for place in range(int(batch.mask[0].sum())):
        assert said[place].item() == pytest.approx(entropy[start + place - 1].item(), abs=1e-5)


def test_words_of_the_world_and_padding_are_said_nothing_of(llama):
    policy = built(llama)
    batch = batch_of(policy, two_turns(policy))
    pi = policy.signals(batch, NAMES)
    assert (pi.logp[~batch.mask] == 0).all()
    assert (pi.entropy[~batch.mask] == 0).all()
    assert (pi.logp[batch.mask] < 0).all()


def test_a_batch_without_actions_has_no_gradient(llama):
    policy = llama.build()
    seen = policy.encode_observation(Rollout(), "Hi")
    batch = batch_of(policy, [Rollout((("Hi", Action((), (), seen)),))] * 2)
    assert policy.signals(batch, NAMES).logp.shape == (2, 0)
    both = batch_of(policy, [Rollout((("Hi", Action((5,), (-1.0,), seen)),))])
    masked = replace(both, mask=~both.mask)
    policy.signals(masked, NAMES).logp.sum().backward()
    assert all(p.grad is None or not p.grad.any() for p in policy.parameters())


@pytest.mark.parametrize("lora", [None, Lora(4)], ids=["full", "lora"])
@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma2"])
def test_gradient_checkpointing_changes_no_gradient(folders, family, lora, monkeypatch):
    monkeypatch.setattr(NativeLlamaBackend, "is_plain", False)  # by modules both
    spec = CausalLM(folders[family], max_new_tokens=8, lora=lora)
    plain, again = spec.build(), replace(spec, gradient_checkpointing=True).build()
    with_some_b(plain)
    again.load(plain.weights())
    batch = answers(plain)
    ours, theirs = gradients(again, batch), gradients(plain, batch)
    assert len(ours) == len(theirs) > 0
    for mine, yours in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, yours, rtol=1e-4, atol=1e-5)
    assert answers(again).inputs["token"].tolist() == batch.inputs["token"].tolist()


@pytest.mark.parametrize(
    ("family", "dropout"),
    [
        ("llama", {"attention_dropout": 0.5}),
        ("gpt2", {"resid_pdrop": 0.5, "attn_pdrop": 0.5, "embd_pdrop": 0.5}),
    ],
)
def test_dropout_is_off_even_where_the_model_has_some(tmp_path, family, dropout):
    folder = plant(tmp_path, family, **dropout)
    policy = CausalLM(str(folder), max_new_tokens=8, gradient_checkpointing=True).build()
    batch = answers(policy)
    torch.testing.assert_close(policy.signals(batch).logp, batch.old_logp, rtol=0, atol=2e-5)


def test_parameters_are_all_of_the_model_or_the_adapters_alone(folders):
    full, lora = (
        built(CausalLM(folders["llama"], max_new_tokens=8)),
        built(CausalLM(folders["llama"], max_new_tokens=8, lora=Lora(4))),
    )
    assert sum(p.numel() for p in full.parameters()) == full.hf_model.num_parameters()
    sizes = [(32, 32), (32, 16), (32, 16), (32, 32), (32, 64), (32, 64), (64, 32)]
    assert sum(p.numel() for p in lora.parameters()) == 2 * 4 * sum(i + o for i, o in sizes)
    assert all("lora_" in name for name in lora.weights())


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_fresh_adapters_change_nothing(folders, family):
    full, lora = (
        built(CausalLM(folders[family], max_new_tokens=8, lora=x)) for x in (None, Lora(4))
    )
    batch = answers(full)
    torch.testing.assert_close(lora.signals(batch).logp, full.signals(batch).logp)


def test_adapters_of_the_head_are_trained_and_sampled_alike(folders):
    policy = CausalLM(
        folders["llama"], max_new_tokens=12, lora=Lora(4, targets=("lm_head",))
    ).build()
    before = answers(policy).inputs["token"]
    with_some_b(policy)
    batch = answers(policy)
    assert batch.inputs["token"].tolist() != before.tolist()
    torch.testing.assert_close(policy.signals(batch).logp, batch.old_logp, rtol=0, atol=2e-5)


def test_training_follows_the_gradient(llama):
    policy = llama.build()
    batch = answers(policy)
    before = policy.signals(batch).logp.sum()
    before.backward()
    slope = sum(p.grad.square().sum() for p in policy.parameters())
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(parameter.grad, alpha=1e-7)
    rise = policy.signals(batch).logp.sum() - before
    assert rise.item() == pytest.approx(1e-7 * slope.item(), rel=0.2)
