"""Batches and a tabular policy for trying components: in doctests, tests and property checks."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from grupo.core.batch import Batch, SignalDict, Signals, TaskHistory


def make_batch(
    group: Sequence[int],
    reward: Sequence[float] | None = None,
    *,
    length: Sequence[int] | None = None,
    advantage: Sequence[float] | None = None,
    logp: float = -1.0,
    reward_terms: Mapping[str, Sequence[float]] | None = None,
    signals: Mapping[str, Sequence[Sequence[float]]] | None = None,
    turn: Sequence[Sequence[int]] | None = None,
    history: Sequence[TaskHistory] = (),
) -> Batch:
    """A small batch in float64 with one row per rollout.

    Args:
        group: Group of each rollout.
        reward: Reward of each rollout; 0 by default.
        length: Number of actions of each rollout; 1 by default.
        advantage: Advantage of each rollout; the reward by default.
        logp: Old log-probability of every action, also that of the sampler and the reference.
        reward_terms: Reward terms by name, one value per rollout.
        signals: Signals by name, a row per rollout; rows have the width of the longest rollout.
        turn: Turn of each action, a row per rollout; 0 by default.
        history: Earlier rewards of each group's task; empty by default.
    """
    lengths = torch.tensor(length or [1] * len(group))
    mask = torch.arange(int(lengths.max()))[None] < lengths[:, None]
    old_logp = torch.full(mask.shape, logp, dtype=torch.float64) * mask
    all_signals = {"logp@ref": old_logp, "logp@sampler": old_logp} | _to_tensors(signals or {})
    batch = Batch.of(
        torch.tensor(reward or [0.0] * len(group), dtype=torch.float64),
        torch.tensor(group),
        rollout=torch.arange(len(group)),
        mask=mask,
        old_logp=old_logp,
        turn=None if turn is None else torch.tensor(turn),
        signals=SignalDict(all_signals),
        reward_terms=SignalDict(_to_tensors(reward_terms or {})),
        history=tuple(history) or (TaskHistory(),) * (max(group) + 1),
    )
    return batch.with_advantage(lambda x, _: torch.tensor(advantage).to(x)) if advantage else batch


def _to_tensors(numbers: Mapping[str, Sequence[Any]]) -> dict[str, Tensor]:
    return {name: torch.tensor(x, dtype=torch.float64) for name, x in numbers.items()}


def perturb_logp(batch: Batch, deltas: Sequence[Sequence[float]]) -> Signals:
    """Signals of a policy whose log-probs differ from the batch's old ones by `deltas` (N, T)."""
    logp = batch.old_logp + torch.tensor(deltas, dtype=batch.old_logp.dtype)
    return Signals(logp=logp.requires_grad_())


def rich_batch(
    required_signals: Collection[str] = (), reward_terms: Collection[str] = (), seed: int = 0
) -> Batch:
    """A batch of five dissimilar groups in float64, with only the required signals.

    It has ragged rows, an observation between two turns, a rollout of two rows, a group whose
    rewards are all 0, and a group of one rollout. Masked numbers are arbitrary, not 0. Reward terms
    and step values, which may be labels, are 0, 1/2 or 1, so that some of them are equal.

    Args:
        required_signals: Signals to include. With "sampled", some rollouts are demonstrations and
            some actions are forced; with "off_context", some actions come from another context.
        reward_terms: Reward terms to include beside "correct".
        seed: Seed of all random numbers.
    """
    rng = torch.Generator().manual_seed(seed)
    group = torch.repeat_interleave(torch.arange(5), torch.tensor([4, 5, 4, 4, 1]))
    rollout = torch.tensor([0, 1, 2, 2, *range(3, len(group))])
    shape = (len(rollout), 6)
    length = torch.randint(2, 7, (shape[0], 1), generator=rng)
    mask = (torch.arange(6) < length) & (torch.arange(6) != 2)  # column 2 is an observation
    terms = {
        name: torch.rand(len(group), generator=rng, dtype=torch.float64) * (group != 3)
        for name in ("correct", *reward_terms)
    }
    terms |= {name: (2 * terms[name]).round() / 2 for name in reward_terms}
    demonstrated = _is_demonstration(rollout) if "sampled" in required_signals else rollout < 0
    forced = demonstrated.roll(1)[:, None] & (torch.arange(6) == 3)
    sampled = mask & ~(demonstrated[:, None] | forced)
    off_context = mask & _is_demonstration(rollout)[:, None] & ("off_context" in required_signals)
    signals = {
        name: _random_signal(name, shape, rng)
        for name in ("logp@sampler", *sorted(required_signals))
    }
    signals |= {"sampled": sampled.double(), "off_context": off_context.double()}
    return Batch.of(
        torch.stack([*terms.values()]).sum(0),
        group,
        rollout=rollout,
        mask=mask,
        turn=(torch.arange(6) > 2).long().expand(shape).clone(),
        old_logp=torch.where(mask & ~sampled, 0.0, _random_signal("logp", shape, rng)),
        signals=SignalDict(signals),
        reward_terms=SignalDict(terms),
        history=tuple(TaskHistory((p,), ((0.0, 1.0, float(p)),)) for p in range(5)),
        inputs=torch.arange(shape[0]),
    )


def _is_demonstration(rollout: Tensor) -> Tensor:
    """Marks the rows of every fifth rollout as demonstrations."""
    return rollout % 5 == 1


def _random_signal(name: str, shape: tuple[int, int], generator: torch.Generator) -> Tensor:
    """Random log-probs, positive numbers, or labels 0, 1/2 and 1, depending on the name."""
    logp = (0.05 + 0.9 * torch.rand(shape, generator=generator, dtype=torch.float64)).log()
    if name.startswith("step/"):
        return (-logp).clamp(max=2.0).round() / 2
    return logp if "logp" in name else -logp


class TablePolicy:
    """A policy with one free parameter per action; its signals are smooth functions of it.

    The `inputs` of a batch are rows of the table, so that a row keeps its parameters when it is
    reordered. Masked signals are not 0, which reveals a method that reads them.

    Args:
        rows: Rows of the table.
        width: Actions per row.
        rows_per_microbatch: Rows that are evaluated together.
        seed: Seed of the parameters.
    """

    is_sharded = False

    def __init__(
        self, rows: int, width: int, rows_per_microbatch: int = 1_000, seed: int = 1
    ) -> None:
        rng = torch.Generator().manual_seed(seed)
        self.table = nn.Parameter(torch.randn(rows, width, generator=rng, dtype=torch.float64))
        self.rows_per_microbatch = rows_per_microbatch

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """A different function for each name; log-probs are negative, other signals positive."""
        x = self.table[batch.inputs][:, : batch.mask.shape[1]]
        values = {name: logsigmoid(x + 0.1 * len(name) - 0.4) for name in {"logp", *names}}
        return Signals({name: y if "logp" in name else -y for name, y in values.items()})

    def microbatches(self, batch: Batch) -> Iterator[Tensor]:
        """Row indices, `rows_per_microbatch` at a time."""
        yield from torch.arange(len(batch.mask)).split(self.rows_per_microbatch)

    def parameters(self) -> list[nn.Parameter]:
        """The table."""
        return [self.table]
