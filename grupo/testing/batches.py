"""Batches and a policy to try pieces on, in doctests, tests and report cards."""

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
    """One row per rollout: rewards and advantages 0 and one action each unless told otherwise.

    `parts` are numbers of each rollout, `seen` of each action, rows of one width: a rollout's
    `length` says how many of them count.
    """
    lengths = torch.tensor(length or [1] * len(group))
    mask = torch.arange(int(lengths.max()))[None] < lengths[:, None]
    old = torch.full(mask.shape, logp, dtype=torch.float64) * mask
    measured = {"logp@ref": old, "logp@sampler": old} | _to_tensors(signals or {})
    batch = Batch.of(
        torch.tensor(reward or [0.0] * len(group), dtype=torch.float64),
        torch.tensor(group),
        rollout=torch.arange(len(group)),
        mask=mask,
        old_logp=old,
        turn=None if turn is None else torch.tensor(turn),
        seen=SignalDict(measured),
        parts=SignalDict(_to_tensors(reward_terms or {})),
        past=tuple(history) or (TaskHistory(),) * (max(group) + 1),
    )
    return batch.with_advantage(lambda x, _: torch.tensor(advantage).to(x)) if advantage else batch


def _to_tensors(numbers: Mapping[str, Sequence[Any]]) -> dict[str, Tensor]:
    return {name: torch.tensor(x, dtype=torch.float64) for name, x in numbers.items()}


def perturb_logp(batch: Batch, deltas: Sequence[Sequence[float]]) -> Signals:
    """What a policy would say whose log-probabilities moved from the batch's by `by` (N, T)."""
    moves = torch.tensor(deltas, dtype=batch.old_logp.dtype)
    return Signals(logp=(batch.old_logp + moves).requires_grad_())


def rich_batch(
    required_signals: Collection[str] = (), reward_terms: Collection[str] = (), seed: int = 0
) -> Batch:
    """Five groups as unlike as groups can be, in float64, with `required_signals` measured and nothing else.

    Ragged rows with the world's words between two turns, a rollout of two rows, a group whose
    rollouts are all wrong, a group of one. Numbers where masked are arbitrary, not 0. Of `parts`
    and of marks, which may be labels, some are equal: they are 0, 1 or 2 halves. Where `sampled` is
    needed some rollouts are demonstrations, and an action here and there was forced; where `moved`
    is, some were drawn elsewhere.
    """
    random = torch.Generator().manual_seed(seed)
    group = torch.repeat_interleave(torch.arange(5), torch.tensor([4, 5, 4, 4, 1]))
    rollout = torch.tensor([0, 1, 2, 2, *range(3, len(group))])
    shape = (len(rollout), 6)
    length = torch.randint(2, 7, (shape[0], 1), generator=random)
    mask = (torch.arange(6) < length) & (torch.arange(6) != 2)  # column 2: the world's words
    components = {
        name: torch.rand(len(group), generator=random, dtype=torch.float64) * (group != 3)
        for name in ("correct", *reward_terms)
    }
    components |= {name: (2 * components[name]).round() / 2 for name in reward_terms}
    shown = _is_demonstration(rollout) if "sampled" in required_signals else rollout < 0
    elsewhere = mask & _is_demonstration(rollout)[:, None] & ("moved" in required_signals)
    sampled = mask & ~(shown[:, None] | (shown.roll(1)[:, None] & (torch.arange(6) == 3)))
    seen = {
        name: _random_signal(name, shape, random)
        for name in ("logp@sampler", *sorted(required_signals))
    }
    return Batch.of(
        torch.stack([*components.values()]).sum(0),
        group,
        rollout=rollout,
        mask=mask,
        turn=(torch.arange(6) > 2).long().expand(shape).clone(),
        old_logp=torch.where(mask & ~sampled, 0.0, _random_signal("logp", shape, random)),
        seen=SignalDict({**seen, "sampled": sampled.double(), "moved": elsewhere.double()}),
        parts=SignalDict(components),
        past=tuple(TaskHistory((p,), ((0.0, 1.0, float(p)),)) for p in range(5)),
        inputs=torch.arange(shape[0]),
    )


def _is_demonstration(rollout: Tensor) -> Tensor:
    """Which rows are of rollouts that somebody else made: one in five."""
    return rollout % 5 == 1


def _random_signal(name: str, shape: tuple[int, int], generator: torch.Generator) -> Tensor:
    logp = (0.05 + 0.9 * torch.rand(shape, generator=generator, dtype=torch.float64)).log()
    if name.startswith("mark/"):
        return (-logp).clamp(max=2.0).round() / 2
    return logp if "logp" in name else -logp


class TablePolicy:
    """A policy of one free number per action of a batch; its signals are smooth functions of it.

    A batch's `inputs` are rows of the table, so that a row keeps its numbers wherever it is moved.
    Where masked it says something, not 0: who reads it there is found out.
    """

    def __init__(
        self, rows: int, width: int, rows_per_microbatch: int = 1_000, seed: int = 1
    ) -> None:
        random = torch.Generator().manual_seed(seed)
        self.table = nn.Parameter(torch.randn(rows, width, generator=random, dtype=torch.float64))
        self.rows_per_microbatch = rows_per_microbatch

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """`logp` and its likes negative, anything else positive; each another function."""
        x = self.table[batch.inputs][:, : batch.mask.shape[1]]
        said = {name: logsigmoid(x + 0.1 * len(name) - 0.4) for name in {"logp", *names}}
        return Signals({name: y if "logp" in name else -y for name, y in said.items()})

    def microbatches(self, batch: Batch) -> Iterator[Tensor]:
        """So many rows at a time."""
        yield from torch.arange(len(batch.mask)).split(self.rows_per_microbatch)

    def parameters(self) -> list[nn.Parameter]:
        """The table."""
        return [self.table]
