"""Auxiliary models: references, teachers, prompt overrides; and auxiliary heads."""

import asyncio
from dataclasses import replace
from functools import partial
from math import log

import pytest
import torch

from grupo.core.aux_heads import LearnedScalar, LinearHead
from grupo.core.batch import Batch
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.types import Group, Response, Rollout, Task
from grupo.inference.sampling_params import Sampling
from grupo.models.base import AuxModel
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.lora import Lora
from grupo.models.token_statistics import token_signals
from grupo.training.update.collate import collate
from grupo.training.update.signals import add_signals
from grupo.util.event_loop import run_coroutine
from tests.helpers.tiny_lm import (
    PROMPTS,
    answer_batch,
    build_cached,
    dense_attention,
    generate,
    save_model,
)

COMPARISONS = ("reverse_kl@teacher", "forward_kl@teacher", "jsd@teacher")


@pytest.fixture(scope="module")
def teacher(tmp_path_factory) -> CausalLM:
    """Another model with the same vocabulary."""
    return CausalLM(str(save_model(tmp_path_factory.mktemp("teacher"), "qwen3")), max_new_tokens=16)


def full_logp(policy: CausalPolicy, batch: Batch) -> torch.Tensor:
    """Log-probabilities of the vocabulary at every action, by transformers, (N, T, V)."""
    token, start = batch.inputs["token"], batch.inputs["start"]
    with dense_attention(policy) as model:
        logp = model(token).logits.log_softmax(-1)
    columns = (start[:, None] - 1 + torch.arange(batch.mask.shape[1])).clamp(max=token.shape[1] - 1)
    return torch.stack([logp[row, column] for row, column in enumerate(columns)])


def test_comparisons_use_full_distributions(llama, teacher):
    policy = llama.build()
    batch = answer_batch(policy)
    aux_models = policy.attach_aux_models(
        COMPARISONS, ReferenceUpdate(), [AuxModel("teacher", teacher)]
    )
    signals = policy.signals(batch, COMPARISONS)
    p, q = full_logp(policy, batch), full_logp(aux_models.signal_models["teacher"], batch)
    mixture = ((p.exp() + q.exp()) / 2).log()
    expected = {
        "reverse_kl@teacher": (p.exp() * (p - q)).sum(-1),
        "forward_kl@teacher": (q.exp() * (q - p)).sum(-1),
        "jsd@teacher": ((p.exp() * (p - mixture)).sum(-1) + (q.exp() * (q - mixture)).sum(-1)) / 2,
    }
    for name, value in expected.items():
        torch.testing.assert_close(
            signals[name][batch.mask], value[batch.mask], rtol=1e-4, atol=1e-5
        )
        assert (signals[name][~batch.mask] == 0).all()


def test_comparisons_have_no_gradient_in_the_teacher(llama, teacher):
    policy = llama.build()
    aux_models = policy.attach_aux_models(
        COMPARISONS, ReferenceUpdate(), [AuxModel("teacher", teacher)]
    )
    policy.signals(answer_batch(policy), COMPARISONS)["jsd@teacher"].sum().backward()
    assert all(p.grad is not None for p in policy.parameters())
    assert all(p.grad is None for p in aux_models.signal_models["teacher"].module.parameters())


def test_initial_divergence_from_the_reference_is_zero(llama):
    policy = llama.build()
    names = ("reverse_kl@ref", "forward_kl@ref", "jsd@ref")
    policy.attach_aux_models(names, ReferenceUpdate(), [])
    signals = policy.signals(answer_batch(policy), names)
    assert all(signals[name].abs().max() < 1e-6 for name in names)


def test_temperature_scaled_logp_matches_a_policy_of_that_temperature(llama):
    policy = llama.build()
    batch = answer_batch(policy)
    aux_models = policy.attach_aux_models(["logp@t=1.3"], ReferenceUpdate(), [])
    hot = build_cached(replace(llama, sampling=Sampling(temperature=1.3)))
    # with a gradient, cached activations are reused, which rounds differently
    with torch.no_grad():
        both = aux_models.signal_models["t=1.3"].signals(batch).logp, hot.signals(batch).logp
    torch.testing.assert_close(*both, rtol=0, atol=1e-6)


def hint(group: Group, rollout: Rollout) -> str | None:
    return f"Hint! {group.task.prompt}" if group.task.key == "1" else None


def test_prompt_override_evaluates_the_same_responses_after_another_prompt(llama):
    policy = llama.build()
    responses_by_prompt = generate(policy)
    groups = [
        Group(Task(str(i), prompt), tuple(Rollout(((prompt, a),), reward=0.0) for a in responses))
        for i, (prompt, responses) in enumerate(zip(PROMPTS, responses_by_prompt, strict=True))
    ]
    batch = collate(groups, policy.encode)
    aux_models = policy.attach_aux_models(
        ["logp@hinted"], ReferenceUpdate(), [AuxModel("hinted", prompt_override=hint)]
    )
    batch = replace(batch, inputs={**batch.inputs, **aux_models.encode_own_prompts(policy, groups)})
    reprompted = aux_models.signal_models["hinted"].signals(batch).logp
    own = policy.signals(batch).logp
    prompt = policy.encode_observation(Rollout(), f"Hint! {PROMPTS[1]}")
    hinted = [Rollout((("", Response(a.items, a.logp, prompt)),)) for a in responses_by_prompt[1]]
    expected = policy.signals(collate([Group(Task("1", ""), tuple(hinted))], policy.encode)).logp
    here = batch.row_group == 1
    width = expected.shape[1]
    torch.testing.assert_close(reprompted[here][:, :width], expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(reprompted[~here], own[~here], rtol=0, atol=1e-5)
    assert (reprompted[here] - own[here]).abs().max() > 0.01
    rows = torch.tensor([5, 3])
    torch.testing.assert_close(
        aux_models.signal_models["hinted"].signals(batch.select_rows(rows)).logp,
        reprompted[rows],
        rtol=0,
        atol=2e-5,
    )


def perturb(policy: CausalPolicy) -> None:
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(torch.linspace(-0.1, 0.1, parameter.numel()).view_as(parameter))


@pytest.mark.parametrize("lora", [None, Lora(2, 4.0)], ids=["full", "lora"])
def test_reference_follows_by_its_rate_when_an_update_is_due(llama, lora):
    policy = replace(llama, lora=lora).build()
    batch = answer_batch(policy)
    aux_models = policy.attach_aux_models(["logp@ref"], ReferenceUpdate(rate=0.25, every=2), [])
    start = {name: x.clone() for name, x in policy.weights().items()}
    before = policy.signals(batch).logp
    perturb(policy)
    aux_models.update_reference(1, policy)
    torch.testing.assert_close(aux_models.signal_models["ref"].signals(batch).logp, before)
    aux_models.update_reference(2, policy)
    for name, x in policy.weights().items():
        torch.testing.assert_close(
            aux_models.reference_weights[name], start[name] + 0.25 * (x - start[name])
        )
    now = {name: x.clone() for name, x in policy.weights().items()}
    policy.load(aux_models.reference_weights)
    expected = policy.signals(batch).logp
    policy.load(now)
    torch.testing.assert_close(aux_models.signal_models["ref"].signals(batch).logp, expected)
    assert (expected - before).abs().max() > 1e-4
    assert all(torch.equal(x, now[name]) for name, x in policy.weights().items())


@pytest.mark.parametrize("lora", [None, Lora(2, 4.0)], ids=["full", "lora"])
def test_reference_without_updates_stays(llama, lora):
    policy = replace(llama, lora=lora).build()
    batch = answer_batch(policy)
    aux_models = policy.attach_aux_models(["logp@ref"], ReferenceUpdate(), [])
    before = policy.signals(batch).logp
    perturb(policy)
    aux_models.update_reference(1, policy)
    torch.testing.assert_close(aux_models.signal_models["ref"].signals(batch).logp, before)


def test_heads_start_at_their_initial_value_with_no_gradient_in_the_policy(llama):
    policy = llama.build()
    batch = answer_batch(policy)
    heads = policy.attach_heads([LinearHead("value", 0.5), LearnedScalar("lambda", 2.0)])
    signals = policy.signals(batch, ["value", "lambda"])
    assert (signals["value"][batch.mask] == 0.5).all()
    assert (signals["lambda"][batch.mask] == 2.0).all()
    ((signals["value"] - 1) ** 2 + signals["lambda"]).sum().backward()
    assert all(p.grad is None for p in policy.parameters())
    assert {name for name, p in heads.named_parameters() if p.grad is not None} == {
        "heads.value.weight",
        "heads.value.bias",
        "scalars.lambda",
    }


def test_requests_with_other_sampling_do_not_change_each_other(llama):
    policy = llama.build()

    async def generate_all() -> list[Response]:
        act = policy.actor(3)
        forks = [act.fork(i) for i in range(3)]
        acts = [
            forks[0],
            forks[1].with_sampling(top_k=1),
            forks[2].with_sampling(temperature=0.01),
            forks[0].with_sampling(),
        ]
        return await asyncio.gather(*(a(Rollout(), "Hi") for a in acts))

    plain, greedy, cold, again = run_coroutine(generate_all())
    assert set(greedy.logp) == {0.0}  # greedy sampling has one choice
    assert greedy.items == cold.items
    assert plain.items == again.items != greedy.items


def test_disagreement_is_the_divergence_from_the_mean_at_each_column(llama):
    policy = llama.build()
    batch = answer_batch(policy)
    group = batch.select_rows(torch.tensor([0, 1, 2]))
    signals = policy.signals(group, ["disagreement"])["disagreement"]
    logp = full_logp(policy, group).detach()
    uniform = torch.full_like(logp, -log(logp.shape[-1]))
    rows = torch.where(group.mask[..., None], logp, uniform)
    off = (rows.mean(0) - rows).clamp(-11, 11)
    expected = (off.exp() - off - 1).sum(-1).mean(0)
    for row in range(3):
        here = group.mask[row]
        torch.testing.assert_close(signals[row][here], expected[here], rtol=1e-4, atol=1e-4)
    assert (signals[group.mask] > 0).any()


def test_group_signals_do_not_depend_on_the_microbatch(llama):
    policy = replace(llama, tokens_per_microbatch=1).build()
    batch = answer_batch(policy)
    two = replace(batch, group=torch.arange(len(batch.reward)) % 2)
    values = add_signals(policy, {}, two, ["disagreement"]).signals["disagreement"]
    for group in (0, 1):
        rows = (two.row_group == group).nonzero()[:, 0]
        alone = policy.signals(two.select_rows(rows), ["disagreement"])["disagreement"]
        torch.testing.assert_close(values[rows], alone, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("chunk", [1 << 24, 1 << 9], ids=["whole", "in chunks"])
def test_comparison_with_swapped_adapters_has_the_right_gradient(llama, monkeypatch, chunk):
    monkeypatch.setattr(
        "grupo.models.token_values.token_signals", partial(token_signals, logits_per_chunk=chunk)
    )
    policy = replace(llama, lora=Lora(2, 4.0)).build()
    twin = replace(llama, lora=Lora(2, 4.0)).build()
    twin.load(policy.weights())
    batch = answer_batch(policy)
    policy.attach_aux_models(["reverse_kl@ref"], ReferenceUpdate(rate=0.5), [])
    twin.signal_models = {"ref": twin.load_frozen_copy()}  # fresh adapters change nothing
    for model in (policy, twin):
        perturb(model)
        model.signals(batch, ["reverse_kl@ref"])["reverse_kl@ref"].sum().backward()
    for own, expected in zip(policy.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(own.grad, expected.grad, rtol=1e-4, atol=1e-6)
    assert any(p.grad.abs().max() > 1e-4 for p in policy.parameters())
