"""Batches and a policy to try pieces on, in doctests, tests and report cards."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from grupo.core.batch import Batch, Named, Past, Signals


def batch_of(
    group: Sequence[int],
    reward: Sequence[float] | None = None,
    *,
    length: Sequence[int] | None = None,
    advantage: Sequence[float] | None = None,
    logp: float = -1.0,
    parts: Mapping[str, Sequence[float]] | None = None,
    seen: Mapping[str, Sequence[Sequence[float]]] | None = None,
    turn: Sequence[Sequence[int]] | None = None,
    past: Sequence[Past] = (),
) -> Batch:
    """One row per rollout: rewards and advantages 0 and one action each unless told otherwise.

    `parts` are numbers of each rollout, `seen` of each action, rows of one width: a rollout's
    `length` says how many of them count.
    """
    lengths = torch.tensor(length or [1] * len(group))
    mask = torch.arange(int(lengths.max()))[None] < lengths[:, None]
    old = torch.full(mask.shape, logp, dtype=torch.float64) * mask
    measured = {"logp@ref": old, "logp@sampler": old} | _tensors(seen or {})
    batch = Batch.of(
        torch.tensor(reward or [0.0] * len(group), dtype=torch.float64),
        torch.tensor(group),
        rollout=torch.arange(len(group)),
        mask=mask,
        old_logp=old,
        turn=None if turn is None else torch.tensor(turn),
        seen=Named(measured),
        parts=Named(_tensors(parts or {})),
        past=tuple(past) or (Past(),) * (max(group) + 1),
    )
    return batch.credited(lambda x, _: torch.tensor(advantage).to(x)) if advantage else batch


def _tensors(numbers: Mapping[str, Sequence[Any]]) -> dict[str, Tensor]:
    return {name: torch.tensor(x, dtype=torch.float64) for name, x in numbers.items()}


def moved(batch: Batch, by: Sequence[Sequence[float]]) -> Signals:
    """What a policy would say whose log-probabilities moved from the batch's by `by` (N, T)."""
    moves = torch.tensor(by, dtype=batch.old_logp.dtype)
    return Signals(logp=(batch.old_logp + moves).requires_grad_())


def rich_batch(needs: Collection[str] = (), parts: Collection[str] = (), seed: int = 0) -> Batch:
    """Five groups as unlike as groups can be, in float64, with `needs` measured and nothing else.

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
        for name in ("correct", *parts)
    }
    components |= {name: (2 * components[name]).round() / 2 for name in parts}
    shown = _shown(rollout) if "sampled" in needs else rollout < 0
    elsewhere = mask & _shown(rollout)[:, None] & ("moved" in needs)
    sampled = mask & ~(shown[:, None] | (shown.roll(1)[:, None] & (torch.arange(6) == 3)))
    seen = {name: _measured(name, shape, random) for name in ("logp@sampler", *sorted(needs))}
    return Batch.of(
        torch.stack([*components.values()]).sum(0),
        group,
        rollout=rollout,
        mask=mask,
        turn=(torch.arange(6) > 2).long().expand(shape).clone(),
        old_logp=torch.where(mask & ~sampled, 0.0, _measured("logp", shape, random)),
        seen=Named({**seen, "sampled": sampled.double(), "moved": elsewhere.double()}),
        parts=Named(components),
        past=tuple(Past((p,), ((0.0, 1.0, float(p)),)) for p in range(5)),
        inputs=torch.arange(shape[0]),
    )


def _shown(rollout: Tensor) -> Tensor:
    """Which rows are of rollouts that somebody else made: one in five."""
    return rollout % 5 == 1


def _measured(name: str, shape: tuple[int, int], random: torch.Generator) -> Tensor:
    logp = (0.05 + 0.9 * torch.rand(shape, generator=random, dtype=torch.float64)).log()
    if name.startswith("mark/"):
        return (-logp).clamp(max=2.0).round() / 2
    return logp if "logp" in name else -logp


class TablePolicy:
    """A policy of one free number per action of a batch; its signals are smooth functions of it.

    A batch's `inputs` are rows of the table, so that a row keeps its numbers wherever it is moved.
    Where masked it says something, not 0: who reads it there is found out.
    """

    def __init__(self, rows: int, width: int, at_a_time: int = 1_000, seed: int = 1) -> None:
        random = torch.Generator().manual_seed(seed)
        self.table = nn.Parameter(torch.randn(rows, width, generator=random, dtype=torch.float64))
        self.at_a_time = at_a_time

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """`logp` and its likes negative, anything else positive; each another function."""
        x = self.table[batch.inputs][:, : batch.mask.shape[1]]
        said = {name: logsigmoid(x + 0.1 * len(name) - 0.4) for name in {"logp", *names}}
        return Signals({name: y if "logp" in name else -y for name, y in said.items()})

    def micro(self, batch: Batch) -> Iterator[Tensor]:
        """So many rows at a time."""
        yield from torch.arange(len(batch.mask)).split(self.at_a_time)

    def parameters(self) -> list[nn.Parameter]:
        """The table."""
        return [self.table]
