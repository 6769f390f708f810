"""Rows that teach nothing are not read."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from grupo.algo.losses import KL, NLL, Clip, Loss, Reinforce
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.method import Method
from grupo.models.causal_policy import CausalPolicy
from grupo.training.update import accumulate_gradients
from tests.helpers.conversations import counted, shuffled
from tests.helpers.tiny_lm import built


@component
class Coupled(Loss):
    """What is credited, of which each row is said to depend on the others."""

    @property
    def couples_rows(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return -batch.advantage * pi.logp


def credited(policy: CausalPolicy) -> Batch:
    """Two groups: of one the answers are told apart, of the other they are not."""
    batch, whose = shuffled(policy, ["A" * 20, "B" * 30], 4)
    mixed = torch.tensor([1.0, -1.0, 0.5, -0.5] * 2) * (whose == 0)
    return batch.with_signals({"logp@ref": batch.old_logp - 0.1}).with_advantage(
        lambda x, _: mixed.to(x)
    )


def gradient(policy: CausalPolicy, method: Method, batch: Batch) -> tuple[Tensor, list[int]]:
    """What a method teaches, and how many tokens were read for it, each time."""
    policy.module.zero_grad()
    with counted(policy) as counts:
        accumulate_gradients(policy, method, batch)
    grads = [p.grad.flatten() for p in policy.parameters() if p.grad is not None]
    return torch.cat(grads or [torch.zeros(0)]), counts


TOLD_APART, ALIKE = 20 + 4 * 3, 30 + 4 * 3  # tokens of the two groups that something comes after
WITHOUT = {"clip": Clip(), "times": 2.0 * Clip(), "sum": Clip() + 0.5 * Clip(0.1, 0.3)}
WITH = {"kl": Clip() + 0.1 * KL(), "likelihood": Clip() + 1e-12 * NLL()}


@pytest.mark.parametrize("loss", WITHOUT.values(), ids=WITHOUT)
def test_rows_without_advantage_are_not_read_where_they_teach_nothing(llama, loss):
    policy = built(llama)
    assert gradient(policy, Method(loss=loss), credited(policy))[1] == [TOLD_APART]


@pytest.mark.parametrize("loss", WITH.values(), ids=WITH)
def test_they_are_read_where_they_teach_something(llama, loss):
    policy = built(llama)
    assert gradient(policy, Method(loss=loss), credited(policy))[1] == [TOLD_APART + ALIKE]


def unevenly(batch: Batch) -> PerAction:
    """Every action counts otherwise."""
    return batch.mask * torch.linspace(0.1, 1, batch.mask.numel()).view(batch.mask.shape)


def test_the_gradient_is_the_same_whether_they_are_read_or_not(llama):
    policy = built(llama)
    batch, method = credited(policy), Method(loss=Clip(), aggregation=unevenly)
    without, some = gradient(policy, method, batch)
    among, every = gradient(policy, method.replace(loss=WITH["likelihood"]), batch)
    assert sum(some) < sum(every)
    assert (without - among).abs().max() < 1e-6 * among.abs().max()


def test_rows_without_weight_are_not_read_whatever_the_loss(llama):
    policy = built(llama)

    def of_the_first(batch: Batch) -> PerAction:
        return batch.mask * (batch.row_group[:, None] == int(batch.row_group[0])).double()

    batch = credited(policy)
    batch = replace(batch, group=(batch.advantage == 0).all(1).long())
    first = [TOLD_APART, ALIKE][int(batch.group[0])]
    method = Method(loss=Clip() + 0.1 * KL(), aggregation=of_the_first)
    assert gradient(policy, method, batch)[1] == [first]


def test_where_no_row_teaches_nothing_is_read_and_nothing_learned(llama):
    policy = built(llama)
    batch = credited(policy).with_advantage(lambda x, _: torch.zeros_like(x))
    learned, counts = gradient(policy, Method(loss=Clip()), batch)
    assert counts == []
    assert not learned.any()
    assert accumulate_gradients(policy, Method(loss=Clip()), batch) == {
        "loss": 0.0,
        "tokens/backpropagated": 0.0,
    }


def test_where_rows_are_coupled_only_those_that_are_taught_are_read_again(llama):
    policy = built(llama)
    batch = credited(policy)
    coupled, counts = gradient(policy, Method(loss=Coupled(), aggregation=unevenly), batch)
    assert counts == [TOLD_APART + ALIKE, TOLD_APART]
    alone, _ = gradient(policy, Method(loss=Reinforce(), aggregation=unevenly), batch)
    assert (coupled - alone).abs().max() < 1e-6 * alone.abs().max()
