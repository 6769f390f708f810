"""The gradient of each of many steps, with the slots of a method as they are."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.core.batch import Batch, SignalDict, Signals, TaskHistory
from grupo.evidence.exact.enumeration import Step
from grupo.evidence.exact.environment import FiniteEnv
from grupo.evidence.exact.signals import PolicyTables, table_signals
from grupo.method import Method

STEPS_PER_BATCH = 64  # independent steps that are evaluated together


def step_gradients(
    method: Method, env: FiniteEnv, steps: Sequence[Step], tables: PolicyTables
) -> Float[Tensor, "B S V"]:
    """The gradient of the loss in the table of the current policy, for each of B steps.

    Steps are evaluated many at a time, as groups of one batch, except for a method whose groups
    depend on one another. A step without groups has the gradient 0.

    Args:
        method: The method, without schedules.
        env: The environment.
        steps: The groups of each step.
        tables: The policies.
    """
    gradients = torch.zeros(len(steps), *tables.current.shape, dtype=torch.float64)
    trained = torch.tensor([i for i, step in enumerate(steps) if step], dtype=torch.long)
    size = 1 if method.requires.whole_batch else STEPS_PER_BATCH
    for start in range(0, len(trained), size):
        numbers = trained[start : start + size]
        chosen = [steps[i] for i in numbers.tolist()]
        gradients[numbers] = _gradients_in_one_batch(method, env, chosen, tables)
    return gradients


def make_batch(
    env: FiniteEnv,
    groups: Sequence[Sequence[int]],
    tables: PolicyTables,
    signals: Iterable[str] = (),
) -> Batch:
    """Groups of answers as a batch in float64 with one row per rollout.

    Args:
        env: The environment.
        groups: Numbers of the answers of each group; they are the batch's `inputs`, too.
        tables: The policies.
        signals: Names of signals that are measured before the update.
    """
    answer = torch.tensor([a for group in groups for a in group])
    measured = _answer_signals({"logp", *signals}, env, tables.before_update(), answer)
    return Batch.of(
        env.rewards[answer],
        torch.repeat_interleave(torch.tensor([len(group) for group in groups])),
        rollout=torch.arange(len(answer)),
        mask=env.mask[answer],
        old_logp=measured["logp"],
        signals=SignalDict(measured),
        reward_terms=SignalDict(correct=env.rewards[answer]),
        history=(TaskHistory(),) * len(groups),
        inputs=answer,
    )


def _gradients_in_one_batch(
    method: Method, env: FiniteEnv, steps: Sequence[Step], tables: PolicyTables
) -> Float[Tensor, "B S V"]:
    requires = method.requires
    groups = [group for step in steps for group in step]
    batch = make_batch(env, groups, tables, requires.signals).with_advantage(method.advantage)
    weight = _weights(method, batch, steps)
    rows = env.table_rows[batch.inputs]
    logits = tables.at(rows)
    leaf = logits.current.detach().requires_grad_()  # each token has logits of its own
    names = sorted({"logp", *requires.recomputed_signals})
    live = table_signals(names, replace(logits, current=leaf), env.tokens[batch.inputs], batch.mask)
    value = _answer_signals(names, env, tables, batch.inputs)
    # equal answers have equal bits, whatever their place in the batch: ties remain ties
    pi = Signals({name: value[name] + (x - x.detach()) for name, x in live.items()})
    (slope,) = torch.autograd.grad((weight * method.loss(pi, batch)).sum(), leaf)
    num_rows, num_tokens = tables.current.shape
    step_of_row = torch.repeat_interleave(torch.tensor(_num_rollouts(steps)))
    place = (step_of_row[:, None] * num_rows + rows).flatten()
    total = slope.new_zeros(len(steps) * num_rows, num_tokens)
    return total.index_add(0, place, slope.flatten(0, 1)).view(len(steps), num_rows, num_tokens)


def _answer_signals(
    names: Iterable[str], env: FiniteEnv, tables: PolicyTables, answer: Tensor
) -> dict[str, Tensor]:
    """Signals of answers (N, T) by name, computed once per answer of the environment."""
    signals = table_signals([*names], tables.at(env.table_rows), env.tokens, env.mask)
    return {name: x[answer] for name, x in signals.items()}


def _weights(method: Method, batch: Batch, steps: Sequence[Step]) -> Tensor:
    """The weights of each step, whose aggregation does not see the other steps."""
    groups = [slice(a, b) for a, b in pairwise(accumulate(map(len, steps), initial=0))]
    rows = [slice(a, b) for a, b in pairwise(accumulate(_num_rollouts(steps), initial=0))]
    parts = (_part(batch, *place) for place in zip(rows, groups, strict=True))
    return torch.cat([method.aggregation(part) for part in parts])


def _part(batch: Batch, rows: slice, groups: slice) -> Batch:
    """The batch of one step; rows are rollouts."""
    return replace(
        batch,
        reward=batch.reward[rows],
        group=batch.group[rows] - groups.start,
        rollout=batch.rollout[rows] - rows.start,
        sequence=batch.sequence[rows],
        mask=batch.mask[rows],
        turn=batch.turn[rows],
        old_logp=batch.old_logp[rows],
        advantage=batch.advantage[rows],
        signals=SignalDict({name: x[rows] for name, x in batch.signals.items()}),
        reward_terms=SignalDict({name: x[rows] for name, x in batch.reward_terms.items()}),
        history=batch.history[groups],
        inputs=batch.inputs[rows],
    )


def _num_rollouts(steps: Sequence[Step]) -> list[int]:
    return [sum(map(len, step)) for step in steps]
