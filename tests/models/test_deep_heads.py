"""Heads whose gradient trains the policy, or a model of their own."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from grupo.core.aux_heads import DeepHead, LinearHead, OwnModelHead
from grupo.models.aux_heads import head_parameters, head_weights, load_head_weights
from grupo.models.causal_policy import CausalPolicy
from grupo.models.lora import Lora
from grupo.util.errors import ConfigError
from tests.helpers.tiny_lm import answer_batch, build_cached, dense_attention

DEEP, OWN = DeepHead("score"), OwnModelHead("score")


def with_random_head(policy: CausalPolicy, head) -> nn.Linear:
    linear = policy.attach_heads((head,)).heads["score"]
    assert isinstance(linear, nn.Linear)
    nn.init.normal_(linear.weight)
    return linear


def transformers_scores(policy: CausalPolicy, batch, linear: nn.Linear) -> Tensor:
    """The head on the states before the actions, computed with transformers alone."""
    token, start = batch.inputs["token"], batch.inputs["start"]
    with dense_attention(policy) as model:
        hidden = model(token, output_hidden_states=True).hidden_states[-1]
    row, action = batch.mask.nonzero(as_tuple=True)
    return linear(hidden[row, start[row] + action - 1])[:, 0]


def gradients(policy: CausalPolicy) -> list[Tensor]:
    result = [p.grad for p in policy.parameters() if p.grad is not None]
    policy.module.zero_grad()
    return result


@pytest.mark.usefixtures("with_and_without_compiler")
def test_the_gradient_of_a_deep_head_is_that_of_transformers(llama):
    policy = llama.build()
    batch = answer_batch(policy)
    linear = with_random_head(policy, DEEP)
    scores = policy.signals(batch, ["score"])["score"][batch.mask]
    expected = transformers_scores(policy, batch, linear)
    torch.testing.assert_close(scores, expected, rtol=1e-4, atol=1e-4)
    (scores**2).sum().backward()
    own = gradients(policy)
    (expected**2).sum().backward()
    reference = gradients(policy)
    assert len(own) == len(reference) > 10
    for a, b in zip(own, reference, strict=True):
        torch.testing.assert_close(a, b, rtol=2e-3, atol=2e-3)


@pytest.mark.usefixtures("with_and_without_compiler")
def test_the_gradients_of_a_deep_head_and_of_log_probabilities_add(llama):
    policy = replace(llama, dtype="float64").build()
    batch = answer_batch(policy)
    with_random_head(policy, DEEP)
    sums = []
    for loss in (
        lambda s: s["score"].sum(),
        lambda s: s.logp.sum(),
        lambda s: s["score"].sum() + s.logp.sum(),
    ):
        loss(policy.signals(batch, ["score"])).backward()
        sums.append(
            {n: p.grad.clone() for n, p in policy.module.named_parameters() if p.grad is not None}
        )
        policy.module.zero_grad()
    of_score, of_logp, of_both = sums
    for name, gradient in of_both.items():
        expected = of_logp[name] + of_score.get(name, torch.zeros(()))
        # the norms of transformers compute in float32
        torch.testing.assert_close(gradient, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("lora", [None, Lora(2, 4.0)], ids=["full", "lora"])
def test_the_gradient_of_a_head_with_a_model_of_its_own_stays_there(llama, lora):
    policy = replace(llama, lora=lora).build()
    batch = answer_batch(policy)
    with_random_head(policy, OWN)
    policy.signals(batch, ["score"])["score"].sum().backward()
    assert all(p.grad is None for p in policy.parameters())
    model = policy.aux_heads.models["score"]
    trained = [p for p in model.parameters() if p.grad is not None]
    assert len(trained) >= len(model.parameters()) // 2  # adapters B are 0, so that A has none
    assert {id(p) for p in model.parameters()} < {id(p) for p in head_parameters(policy.aux_heads)}


def test_a_model_of_its_own_starts_as_the_policy_and_does_not_follow_it(llama):
    policy = llama.build()
    batch = answer_batch(policy)
    linear = with_random_head(policy, OWN)
    before = policy.signals(batch, ["score"])["score"][batch.mask].detach()
    torch.testing.assert_close(
        before, transformers_scores(policy, batch, linear).detach(), rtol=1e-4, atol=1e-4
    )
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.mul_(1.5)
    after = policy.signals(batch, ["score"])["score"][batch.mask]
    torch.testing.assert_close(after.detach(), before, rtol=0, atol=0)


def test_adapters_of_both_models_are_on_the_same_frozen_weights(llama):
    policy = replace(llama, lora=Lora(2, 4.0)).build()
    with_random_head(policy, OWN)
    own = dict(policy.module.named_parameters())
    for name, parameter in policy.aux_heads.models["score"].module.named_parameters():
        assert (parameter.data_ptr() == own[name].data_ptr()) is not parameter.requires_grad


@pytest.mark.parametrize("head", [DEEP, OWN], ids=["deep", "own model"])
def test_weights_of_heads_are_restored(llama, head):
    trained, other = llama.build(), llama.build()
    batch = answer_batch(trained)
    for policy in (trained, other):
        policy.attach_heads((head,))
    with torch.no_grad():
        for parameter in head_parameters(trained.aux_heads):
            parameter.add_(0.1 * torch.randn_like(parameter))
    scores = trained.signals(batch, ["score"])["score"]
    assert not torch.allclose(other.signals(batch, ["score"])["score"], scores)
    load_head_weights(other.aux_heads, head_weights(trained.aux_heads))
    torch.testing.assert_close(other.signals(batch, ["score"])["score"], scores)


def test_weights_of_other_heads_are_refused(llama):
    policy = build_cached(llama)
    weights = head_weights(policy.attach_heads((LinearHead("value"),)))
    policy.attach_heads((DEEP,))
    with pytest.raises(ConfigError, match=r"aux_heads: 'heads\.score\.bias' differs"):
        load_head_weights(policy.aux_heads, weights)


def test_a_masked_diffusion_model_has_deep_heads_and_refuses_models_of_their_own(bert):
    policy = bert.build()
    policy.attach_heads((DEEP,))
    with pytest.raises(ConfigError, match="OwnModelHead needs a copy of the policy"):
        policy.attach_heads((OWN,))
