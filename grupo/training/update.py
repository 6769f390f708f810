"""From a batch to gradients: micro-batches, and two passes where rows are coupled."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from grupo.algo.divergences import k3
from grupo.core.batch import Batch, SignalDict, Signals
from grupo.core.signal_names import GROUP_SIGNALS, is_comparison, split_name
from grupo.method import Method

TokenHook = Callable[[Batch, Mapping[str, Tensor]], None]


def no_hook(batch: Batch, signals: Mapping[str, Tensor]) -> None:
    """Nobody is told what was said of a part of the batch."""


class Scorer(Protocol):
    """Whoever can say how likely a batch's actions are: a policy, a reference, a teacher."""

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals: ...


class MicrobatchScorer(Scorer, Protocol):
    """A speaker that says which of a batch's rows fit in memory together."""

    def microbatches(self, batch: Batch) -> Iterator[Tensor]: ...


@torch.no_grad()
def add_signals(
    policy: MicrobatchScorer, models: Mapping[str, Scorer], batch: Batch, names: Collection[str]
) -> Batch:
    """The batch with more signals measured: `logp@ref` is `logp` of others["ref"].

    A comparison with another, `jsd@ref`, is the policy's to make.
    """
    for name in sorted(set(names) - set(batch.signals)):
        signal, who = split_name(name)
        theirs = who and not is_comparison(name)
        speaker, asked = (models[who], signal) if theirs else (policy, name)
        said = _evaluate_by_group if asked in GROUP_SIGNALS else partial(evaluate_all, policy)
        batch = batch.with_signals({name: said(speaker, batch, [asked])[asked]})
    return batch


def _evaluate_by_group(scorer: Scorer, batch: Batch, names: Collection[str]) -> SignalDict:
    """Signals that a whole group has to be looked at for, whatever fits in memory."""
    out = {name: torch.zeros_like(batch.old_logp) for name in names}
    for group in batch.row_group.unique():
        rows = (batch.row_group == group).nonzero()[:, 0]
        said = scorer.signals(batch.select_rows(rows), names)
        for name in names:
            out[name][rows] = said[name].to(out[name])
    return SignalDict(out)


@torch.no_grad()
def evaluate_all(
    policy: MicrobatchScorer, scorer: Scorer, batch: Batch, names: Collection[str]
) -> SignalDict:
    """Signals of every row, evaluated in the policy's micro-batches."""
    out = {name: torch.zeros_like(batch.old_logp) for name in names}
    for rows in policy.microbatches(batch):
        said = scorer.signals(batch.select_rows(rows), names)
        for name in names:
            out[name][rows] = said[name].to(out[name])
    return SignalDict(out)


def accumulate_gradients(
    policy: MicrobatchScorer, method: Method, batch: Batch, token_hook: TokenHook = no_hook
) -> dict[str, float]:
    """Add the gradient of sum(weight x loss) to the policy's parameters; return what was seen.

    The sum is over the whole minibatch, whatever its micro-batches. Where the loss couples rows it
    is differentiated in the signals first, then the signals in the parameters: exact, and one more
    forward. Rows that have no gradient are not evaluated, and nothing is seen of them. `note` is
    told what was seen of each action.
    """
    weight = method.aggregation(batch)
    names = {"logp", "entropy", *method.loss.recomputed_signals}
    seen = _UpdateMetrics(token_hook)
    if method.loss.couples_rows:
        _two_passes(policy, method, batch, weight, names, seen)
    else:
        _one_pass(policy, method, batch, weight, names, seen)
    return seen.means()


def _one_pass(
    policy: MicrobatchScorer,
    method: Method,
    batch: Batch,
    weight: Tensor,
    names: set[str],
    seen: "_UpdateMetrics",
) -> None:
    taught = _rows_with_gradient(method, batch, weight)
    batch, weight = batch.select_rows(taught), weight[taught]
    for rows in policy.microbatches(batch):
        part = batch.select_rows(rows)
        pi = _evaluate_policy(policy, part, names)
        loss = (weight[rows] * method.loss(pi, part)).sum()
        loss.backward()
        seen.add(method, pi, part, loss)


def _two_passes(
    policy: MicrobatchScorer,
    method: Method,
    batch: Batch,
    weight: Tensor,
    names: set[str],
    seen: "_UpdateMetrics",
) -> None:
    said = evaluate_all(policy, policy, batch, names)
    pi = Signals({name: signal.requires_grad_() for name, signal in said.items()})
    loss = (weight * method.loss(pi, batch)).sum()
    loss.backward()
    seen.add(method, pi, batch, loss)
    slopes = {name: signal.grad for name, signal in pi.items() if signal.grad is not None}
    steep = [(slope != 0).any(1) for slope in slopes.values()]
    taught = torch.stack(steep).any(0).nonzero()[:, 0]
    for some in policy.microbatches(batch.select_rows(taught)):
        rows = taught[some]
        again = _evaluate_policy(policy, batch.select_rows(rows), names)
        torch.autograd.backward([again[n] for n in slopes], [g[rows] for g in slopes.values()])


def _rows_with_gradient(method: Method, batch: Batch, weight: Tensor) -> Tensor:
    """The rows that have a gradient; the others need not be evaluated, unless to be watched."""
    counts = batch.mask & (weight != 0)
    if method.loss.zero_if_no_advantage and not method.controlled_metrics:
        counts &= batch.advantage != 0
    return counts.any(1).nonzero()[:, 0]


def _evaluate_policy(policy: MicrobatchScorer, batch: Batch, names: set[str]) -> Signals:
    """What the policy says, where the batch is; gradients find back to the policy's device."""
    signals = policy.signals(batch, names)
    pi = Signals({name: x.to(batch.old_logp.device) for name, x in signals.items()})
    if pi.logp.requires_grad:
        pi.logp.retain_grad()  # to watch where the loss pushes it
    return pi


class _UpdateMetrics:
    """Sums over the actions of a minibatch of what is worth watching."""

    def __init__(self, note: TokenHook) -> None:
        self.token_hook, self.loss = note, 0.0
        self.sums: defaultdict[str, float] = defaultdict(float)
        self.counts: defaultdict[str, int] = defaultdict(int)
        self.largest_mismatch: dict[str, float] = {"sampler_mismatch/logp_diff_max": 0.0}
        self.alignment_sums = torch.zeros(3, dtype=torch.float64)

    @torch.no_grad()
    def add(self, method: Method, pi: Signals, batch: Batch, loss: Tensor) -> None:
        self.loss += loss.item()
        self._sum("entropy", pi.entropy, batch.mask)
        report = method.loss.metrics(pi, batch)
        self.token_hook(batch, {**report, "entropy": pi.entropy, "ratio": pi.logp - batch.old_logp})
        for name, value in report.items():
            self._sum(name, value, batch.mask)
        sampled = batch.mask & (batch.signals["sampled"] > 0) & (batch.signals["moved"] == 0)
        off = torch.where(sampled, pi.logp - batch.signals["logp@sampler"], 0.0)
        self._sum("sampler_mismatch/logp_diff_mean", off.abs(), sampled)
        self._sum("sampler_mismatch/kl", k3(off * 0, off), sampled)
        if off.numel():
            self._record_largest_mismatch(off.abs(), batch)
        if pi.logp.grad is not None:
            self.alignment_sums += _alignment_sums(
                -pi.logp.grad[batch.mask], batch.advantage[batch.mask]
            ).cpu()

    def _record_largest_mismatch(self, off: Tensor, part: Batch) -> None:
        """Where sampler and trainer are furthest apart."""
        place = divmod(int(off.argmax()), off.shape[1])
        if (most := off[place].item()) > self.largest_mismatch["sampler_mismatch/logp_diff_max"]:
            token = part.signals["step/item"][place].item() if "step/item" in part.signals else 0.0
            self.largest_mismatch = {
                "sampler_mismatch/logp_diff_max": most,
                "sampler_mismatch/max_rollout": float(part.rollout[place[0]]),
                "sampler_mismatch/max_action": float(place[1]),
                "sampler_mismatch/max_token": token,
            }

    def _sum(self, name: str, value: Tensor, mask: Tensor) -> None:
        self.sums[name] += torch.where(mask, value.double(), 0.0).sum().item()
        self.counts[name] += int(mask.sum())

    def means(self) -> dict[str, float]:
        means = {name: s / self.counts[name] for name, s in self.sums.items() if self.counts[name]}
        seen = {"loss": self.loss, "tokens/backpropagated": float(self.counts["entropy"]), **means}
        pushed, push, advantage = self.alignment_sums.tolist()
        if push * advantage > 0:
            seen["update/advantage_alignment"] = pushed / (push * advantage) ** 0.5
        return seen | self.largest_mismatch if "sampler_mismatch/logp_diff_mean" in means else seen


def _alignment_sums(push: Tensor, advantage: Tensor) -> Tensor:
    """What makes up the cosine of how log-probabilities are pushed and of the advantages."""
    push, advantage = push.double(), advantage.double()
    return torch.stack([(push * advantage).sum(), (push**2).sum(), (advantage**2).sum()])
