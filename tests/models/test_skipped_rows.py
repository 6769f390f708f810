"""Rows without a gradient are not evaluated."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from grupo.algo.losses import KL, NLL, Clip, Loss, Reinforce
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.models.causal_policy import CausalPolicy
from grupo.training.update.gradients import accumulate_gradients
from tests.helpers.conversations import count_tokens, shuffled_batch
from tests.helpers.tiny_lm import build_cached


@component
class Coupled(Loss):
    """REINFORCE that declares a coupling of rows."""

    requires = Requires(coupled_rows=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -batch.advantage * pi.logp


def two_groups(policy: CausalPolicy) -> Batch:
    """Two groups: one with advantages, one with advantage 0."""
    batch, group = shuffled_batch(policy, ["A" * 20, "B" * 30], 4)
    advantage = torch.tensor([1.0, -1.0, 0.5, -0.5] * 2) * (group == 0)
    return batch.with_signals({"logp@ref": batch.old_logp - 0.1}).with_advantage(
        lambda x, _: advantage.to(x)
    )


def gradient(policy: CausalPolicy, method: Method, batch: Batch) -> tuple[Tensor, list[int]]:
    """A method's gradient, and the tokens of each forward pass."""
    policy.module.zero_grad()
    with count_tokens(policy) as counts:
        accumulate_gradients(policy, method, batch)
    grads = [p.grad.flatten() for p in policy.parameters() if p.grad is not None]
    return torch.cat(grads or [torch.zeros(0)]), counts


# tokens of the two groups, without the last of each row
WITH_ADVANTAGE, WITHOUT_ADVANTAGE = 20 + 4 * 3, 30 + 4 * 3
ZERO_WITHOUT_ADVANTAGE = {
    "clip": Clip(),
    "times": 2.0 * Clip(),
    "sum": Clip() + 0.5 * Clip(0.1, 0.3),
}
NONZERO_WITHOUT_ADVANTAGE = {"kl": Clip() + 0.1 * KL(), "likelihood": Clip() + 1e-12 * NLL()}


@pytest.mark.parametrize("loss", ZERO_WITHOUT_ADVANTAGE.values(), ids=ZERO_WITHOUT_ADVANTAGE)
def test_rows_without_advantage_are_skipped_if_their_gradient_is_zero(llama, loss):
    policy = build_cached(llama)
    assert gradient(policy, Method(loss=loss), two_groups(policy))[1] == [WITH_ADVANTAGE]


@pytest.mark.parametrize("loss", NONZERO_WITHOUT_ADVANTAGE.values(), ids=NONZERO_WITHOUT_ADVANTAGE)
def test_rows_without_advantage_are_evaluated_if_the_loss_needs_them(llama, loss):
    policy = build_cached(llama)
    assert gradient(policy, Method(loss=loss), two_groups(policy))[1] == [
        WITH_ADVANTAGE + WITHOUT_ADVANTAGE
    ]


def uneven_weights(batch: Batch) -> PerAction:
    """Another weight for each action."""
    return batch.mask * torch.linspace(0.1, 1, batch.mask.numel()).view(batch.mask.shape)


def test_gradient_does_not_depend_on_skipping(llama):
    policy = build_cached(llama)
    batch, method = two_groups(policy), Method(loss=Clip(), aggregation=uneven_weights)
    skipped, skipped_counts = gradient(policy, method, batch)
    full, full_counts = gradient(
        policy, method.replace(loss=NONZERO_WITHOUT_ADVANTAGE["likelihood"]), batch
    )
    assert sum(skipped_counts) < sum(full_counts)
    assert (skipped - full).abs().max() < 1e-6 * full.abs().max()


def test_rows_without_weight_are_skipped_under_every_loss(llama):
    policy = build_cached(llama)

    def first_group_only(batch: Batch) -> PerAction:
        return batch.mask * (batch.row_group[:, None] == int(batch.row_group[0])).double()

    batch = two_groups(policy)
    batch = replace(batch, group=(batch.advantage == 0).all(1).long())
    first = [WITH_ADVANTAGE, WITHOUT_ADVANTAGE][int(batch.group[0])]
    method = Method(loss=Clip() + 0.1 * KL(), aggregation=first_group_only)
    assert gradient(policy, method, batch)[1] == [first]


def test_batch_without_gradients_is_not_evaluated(llama):
    policy = build_cached(llama)
    batch = two_groups(policy).with_advantage(lambda x, _: torch.zeros_like(x))
    grad, counts = gradient(policy, Method(loss=Clip()), batch)
    assert counts == []
    assert not grad.any()
    assert accumulate_gradients(policy, Method(loss=Clip()), batch) == {
        "loss": 0.0,
        "tokens/backpropagated": 0.0,
    }


def test_coupled_losses_backpropagate_rows_with_gradients_only(llama):
    policy = build_cached(llama)
    batch = two_groups(policy)
    coupled, counts = gradient(policy, Method(loss=Coupled(), aggregation=uneven_weights), batch)
    assert counts == [WITH_ADVANTAGE + WITHOUT_ADVANTAGE, WITH_ADVANTAGE]
    alone, _ = gradient(policy, Method(loss=Reinforce(), aggregation=uneven_weights), batch)
    assert (coupled - alone).abs().max() < 1e-6 * alone.abs().max()
