"""The gradients of a training step, update by update, compared with those of GRPO.

The update plan splits the batch; the policy equals the sampler's in the first update and has moved
before each later one. So a clip or a weight that acts on ratios counts exactly if the plan makes
more than one update.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import product

import torch
from torch import Tensor

from grupo.algo.aggregation import (
    ConstantLength,
    group_mean,
    group_sum,
    rollout_mean,
    sequence_mean,
    token_mean,
    token_sum,
)
from grupo.algo.losses import KL, Clip, Loss
from grupo.algo.losses.base import ScaledLoss, SumLoss
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch, SignalDict
from grupo.core.component import walk
from grupo.core.dynamic_number import DynamicNumber
from grupo.core.numbers import NumberOrSchedule
from grupo.core.schedules import resolve_schedules
from grupo.method import Method
from grupo.testing.batches import TablePolicy, rich_batch
from grupo.util.rng import make_rng

TOLERANCE = 1e-12  # largest difference between equal gradients, whose entries are below 10
SEEDS = (0, 1)  # of the batches
MOVES = (0.3, 0.8, 3.0)  # standard deviations of parameters' changes before a later update
START = -2.0  # added to the table, so that log-probs have room to rise
GRPO = Method()
TWO_UPDATES = Updates(minibatches=2)
MEANS = (sequence_mean, token_mean, token_sum, rollout_mean, group_mean, group_sum)
LABELS = ("step/state", "step/action")
# progress of the run, and the value that every controlled metric had in the step before
MOMENTS = ((0.0, ()), (0.5, (0.0,)), (1.0, (10.0,)))


def grpo_counterpart(method: Method) -> Method:
    """GRPO with the method's update plan, its KL divergence (k3) and its mean over tokens.

    The aggregation is GRPO's own if it is more than a mean, or if the method changes nothing else
    that enters the gradient: then the aggregation is what distinguishes the method.

    >>> from grupo.algo.aggregation import token_mean
    >>> from grupo.algo.losses import Reinforce
    >>> grpo_counterpart(Method(aggregation=token_mean)).aggregation is sequence_mean
    True
    >>> grpo_counterpart(Method(aggregation=token_mean, loss=Reinforce())).aggregation is token_mean
    True
    """
    loss: Loss = Clip()
    for coefficient, term in _loss_terms(method.loss):
        loss = loss + coefficient * term if term == KL() else loss
    is_changed = method.loss != loss or method.advantage != GRPO.advantage
    is_mean = method.aggregation in MEANS or isinstance(method.aggregation, ConstantLength)
    aggregation = method.aggregation if is_changed and is_mean else GRPO.aggregation
    return Method(loss=loss, aggregation=aggregation, updates=method.updates)


def has_equal_gradients(method: Method, other: Method, *, matched_engine: bool = False) -> bool:
    """True if the gradients of all updates of a step are equal, on several batches.

    Args:
        method: The first method.
        other: The second method; its update plan makes as many updates.
        matched_engine: The inference engine's log-probs are the trainer's; otherwise they differ.
    """
    pairs = _gradient_pairs(method, other, matched_engine=matched_engine)
    return all((a - b).abs().max().item() <= TOLERANCE for a, b in pairs)


def _gradient_pairs(
    method: Method, other: Method, *, matched_engine: bool
) -> Iterator[tuple[Tensor, Tensor]]:
    signals = method.requires.all_signals | other.requires.all_signals
    terms = sorted(method.requires.reward_terms | other.requires.reward_terms)
    for make_batch, seed in product((rich_batch, _binary_batch), SEEDS):
        batch = make_batch(signals, terms, seed)
        on_policy = _sampled_by(_table_policy(batch), batch, matched_engine=matched_engine)
        for a, b in _resolved_pairs(method, other):
            gradients = (_step_gradients(m, on_policy, signals) for m in (a, b))
            yield from zip(*gradients, strict=True)


def _step_gradients(method: Method, batch: Batch, signals: Collection[str]) -> Iterator[Tensor]:
    """The gradient of each update of a step in the table, which moves at random in between."""
    policy = _table_policy(batch)
    start = policy.table.detach().clone()
    generator = torch.Generator().manual_seed(0)
    scale = torch.tensor(MOVES).to(start)[torch.randint(0, 3, start.shape, generator=generator)]
    batch = batch.with_advantage(method.advantage)
    for minibatch in method.updates(batch, make_rng(0, "plan")):
        pi = policy.signals(minibatch, signals)
        loss = (method.aggregation(minibatch) * method.loss(pi, minibatch)).sum()
        yield torch.autograd.grad(loss, policy.table)[0]
        change = torch.randn(start.shape, generator=generator, dtype=start.dtype)
        with torch.no_grad():
            policy.table.copy_(start + scale * change)


def _table_policy(batch: Batch) -> TablePolicy:
    policy = TablePolicy(*batch.mask.shape)
    with torch.no_grad():
        policy.table.add_(START)
    return policy


def _sampled_by(policy: TablePolicy, batch: Batch, *, matched_engine: bool) -> Batch:
    """The batch as the policy sampled it: every ratio is 1, except of demonstrations and hints."""
    sampled = (batch.signals["sampled"] > 0) & (batch.signals["off_context"] == 0)
    logp = policy.signals(batch).logp.detach()
    batch = replace(batch, old_logp=torch.where(sampled, logp, batch.old_logp))
    return batch.with_signals({"logp@sampler": batch.old_logp}) if matched_engine else batch


def _binary_batch(signals: Collection[str], terms: Collection[str], seed: int) -> Batch:
    """A rich batch with rewards 0 and 1, those of "correct", and a first group of 1 alone.

    All turns have the same state and the same action, where these are labels.
    """
    batch = rich_batch(signals, terms, seed)
    labels = {name: x * 0 for name, x in batch.signals.items() if name in LABELS}
    batch = batch.with_signals(labels)
    correct = ((batch.reward_terms["correct"] > 0.5) | (batch.group == 0)).to(batch.reward)
    reward_terms = SignalDict({**batch.reward_terms, "correct": correct})
    return replace(batch, reward=correct, reward_terms=reward_terms)


def _resolved_pairs(method: Method, other: Method) -> Iterator[tuple[Method, Method]]:
    """Both methods with numbers in place of schedules and controllers, at several moments."""
    is_dynamic = any(isinstance(part, DynamicNumber) for part in walk((method, other)))
    for progress, values in MOMENTS if is_dynamic else MOMENTS[:1]:
        history = dict.fromkeys(
            method.controller_metric_names | other.controller_metric_names, values
        )
        yield resolve_schedules((method, other), progress, history)


def _loss_terms(
    loss: Loss, factor: NumberOrSchedule = 1.0
) -> Iterator[tuple[NumberOrSchedule, Loss]]:
    """The terms of a sum of losses, each with the factor next to it."""
    match loss:
        case SumLoss(left, right):
            yield from _loss_terms(left, factor)
            yield from _loss_terms(right, factor)
        case ScaledLoss(scale, inner):
            yield from _loss_terms(inner, scale)
        case _:
            yield factor, loss
