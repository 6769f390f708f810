"""From a batch to gradients: micro-batches, and two passes where rows are coupled."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from grupo.algo.divergences import k3
from grupo.core.batch import Batch, Named, Signals
from grupo.core.signal_names import OF_GROUPS, compares, split
from grupo.method import Method

Note = Callable[[Batch, Mapping[str, Tensor]], None]


def unnoted(part: Batch, said: Mapping[str, Tensor]) -> None:
    """Nobody is told what was said of a part of the batch."""


class Speaks(Protocol):
    """Whoever can say how likely a batch's actions are: a policy, a reference, a teacher."""

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals: ...


class Rows(Speaks, Protocol):
    """A speaker that says which of a batch's rows fit in memory together."""

    def micro(self, batch: Batch) -> Iterator[Tensor]: ...


@torch.no_grad()
def observe(
    policy: Rows, others: Mapping[str, Speaks], batch: Batch, names: Collection[str]
) -> Batch:
    """The batch with more signals measured: `logp@ref` is `logp` of others["ref"].

    A comparison with another, `jsd@ref`, is the policy's to make.
    """
    for name in sorted(set(names) - set(batch.seen)):
        signal, who = split(name)
        theirs = who and not compares(name)
        speaker, asked = (others[who], signal) if theirs else (policy, name)
        said = _by_group if asked in OF_GROUPS else partial(whole, policy)
        batch = batch.with_seen({name: said(speaker, batch, [asked])[asked]})
    return batch


def _by_group(speaker: Speaks, batch: Batch, names: Collection[str]) -> Named:
    """Signals that a whole group has to be looked at for, whatever fits in memory."""
    out = {name: torch.zeros_like(batch.old_logp) for name in names}
    for group in batch.row_group.unique():
        rows = (batch.row_group == group).nonzero()[:, 0]
        said = speaker.signals(batch.take(rows), names)
        for name in names:
            out[name][rows] = said[name].to(out[name])
    return Named(out)


@torch.no_grad()
def whole(policy: Rows, speaker: Speaks, batch: Batch, names: Collection[str]) -> Named:
    """Signals of every row, evaluated in the policy's micro-batches."""
    out = {name: torch.zeros_like(batch.old_logp) for name in names}
    for rows in policy.micro(batch):
        said = speaker.signals(batch.take(rows), names)
        for name in names:
            out[name][rows] = said[name].to(out[name])
    return Named(out)


def accumulate(
    policy: Rows, method: Method, batch: Batch, note: Note = unnoted
) -> dict[str, float]:
    """Add the gradient of sum(weight x loss) to the policy's parameters; return what was seen.

    The sum is over the whole minibatch, whatever its micro-batches. Where the loss couples rows it
    is differentiated in the signals first, then the signals in the parameters: exact, and one more
    forward. Rows that have no gradient are not evaluated, and nothing is seen of them. `note` is
    told what was seen of each action.
    """
    weight = method.weigh(batch)
    names = {"logp", "entropy", *method.loss.live}
    seen = _Seen(note)
    if method.loss.couples_rows:
        _two_passes(policy, method, batch, weight, names, seen)
    else:
        _one_pass(policy, method, batch, weight, names, seen)
    return seen.means()


def _one_pass(
    policy: Rows, method: Method, batch: Batch, weight: Tensor, names: set[str], seen: "_Seen"
) -> None:
    taught = _taught(method, batch, weight)
    batch, weight = batch.take(taught), weight[taught]
    for rows in policy.micro(batch):
        part = batch.take(rows)
        pi = _said(policy, part, names)
        loss = (weight[rows] * method.loss(pi, part)).sum()
        loss.backward()
        seen.add(method, pi, part, loss)


def _two_passes(
    policy: Rows, method: Method, batch: Batch, weight: Tensor, names: set[str], seen: "_Seen"
) -> None:
    said = whole(policy, policy, batch, names)
    pi = Signals({name: signal.requires_grad_() for name, signal in said.items()})
    loss = (weight * method.loss(pi, batch)).sum()
    loss.backward()
    seen.add(method, pi, batch, loss)
    slopes = {name: signal.grad for name, signal in pi.items() if signal.grad is not None}
    steep = [(slope != 0).any(1) for slope in slopes.values()]
    taught = torch.stack(steep).any(0).nonzero()[:, 0]
    for some in policy.micro(batch.take(taught)):
        rows = taught[some]
        again = _said(policy, batch.take(rows), names)
        torch.autograd.backward([again[n] for n in slopes], [g[rows] for g in slopes.values()])


def _taught(method: Method, batch: Batch, weight: Tensor) -> Tensor:
    """The rows that have a gradient; the others need not be evaluated, unless to be watched."""
    counts = batch.mask & (weight != 0)
    if method.loss.follows_advantage and not method.readings:
        counts &= batch.advantage != 0
    return counts.any(1).nonzero()[:, 0]


def _said(policy: Rows, batch: Batch, names: set[str]) -> Signals:
    """What the policy says, where the batch is; gradients find back to the policy's device."""
    signals = policy.signals(batch, names)
    pi = Signals({name: x.to(batch.old_logp.device) for name, x in signals.items()})
    if pi.logp.requires_grad:
        pi.logp.retain_grad()  # to watch where the loss pushes it
    return pi


class _Seen:
    """Sums over the actions of a minibatch of what is worth watching."""

    def __init__(self, note: Note) -> None:
        self.note, self.loss = note, 0.0
        self.sums: defaultdict[str, float] = defaultdict(float)
        self.counts: defaultdict[str, int] = defaultdict(int)
        self.worst: dict[str, float] = {"mismatch/max": 0.0}
        self.push = torch.zeros(3, dtype=torch.float64)

    @torch.no_grad()
    def add(self, method: Method, pi: Signals, part: Batch, loss: Tensor) -> None:
        self.loss += loss.item()
        self._sum("entropy", pi.entropy, part.mask)
        report = method.loss.report(pi, part)
        self.note(part, {**report, "entropy": pi.entropy, "ratio": pi.logp - part.old_logp})
        for name, value in report.items():
            self._sum(name, value, part.mask)
        sampled = part.mask & (part.seen["sampled"] > 0) & (part.seen["moved"] == 0)
        off = torch.where(sampled, pi.logp - part.seen["logp@sampler"], 0.0)
        self._sum("mismatch/mean", off.abs(), sampled)
        self._sum("mismatch/kl", k3(off * 0, off), sampled)
        if off.numel():
            self._note(off.abs(), part)
        if pi.logp.grad is not None:
            self.push += _push(-pi.logp.grad[part.mask], part.advantage[part.mask]).cpu()

    def _note(self, off: Tensor, part: Batch) -> None:
        """Where sampler and trainer are furthest apart."""
        place = divmod(int(off.argmax()), off.shape[1])
        if (most := off[place].item()) > self.worst["mismatch/max"]:
            token = part.seen["mark/part"][place].item() if "mark/part" in part.seen else 0.0
            self.worst = {
                "mismatch/max": most,
                "mismatch/rollout": float(part.rollout[place[0]]),
                "mismatch/action": float(place[1]),
                "mismatch/token": token,
            }

    def _sum(self, name: str, value: Tensor, mask: Tensor) -> None:
        self.sums[name] += torch.where(mask, value.double(), 0.0).sum().item()
        self.counts[name] += int(mask.sum())

    def means(self) -> dict[str, float]:
        means = {name: s / self.counts[name] for name, s in self.sums.items() if self.counts[name]}
        seen = {"loss": self.loss, "tokens/trained": float(self.counts["entropy"]), **means}
        pushed, push, advantage = self.push.tolist()
        if push * advantage > 0:
            seen["advantage/push"] = pushed / (push * advantage) ** 0.5
        return seen | self.worst if "mismatch/mean" in means else seen


def _push(push: Tensor, advantage: Tensor) -> Tensor:
    """What makes up the cosine of how log-probabilities are pushed and of the advantages."""
    push, advantage = push.double(), advantage.double()
    return torch.stack([(push * advantage).sum(), (push**2).sum(), (advantage**2).sum()])
