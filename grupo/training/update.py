"""From a batch to gradients: micro-batches, and two backward passes if the loss couples rows."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from grupo.algo.divergences import k3
from grupo.core.batch import Batch, SignalDict, Signals
from grupo.core.interfaces import Scorer
from grupo.core.signal_names import GROUP_SIGNALS, is_comparison, split_name
from grupo.method import Method

TokenHook = Callable[[Batch, Mapping[str, Tensor]], None]


def no_hook(batch: Batch, signals: Mapping[str, Tensor]) -> None:
    """Ignores the signals."""


class MicrobatchScorer(Scorer, Protocol):
    """A scorer that knows which rows of a batch fit in memory together."""

    def microbatches(self, batch: Batch) -> Iterator[Tensor]:
        """Row indices of micro-batches; every row occurs once."""
        ...


@torch.no_grad()
def add_signals(
    policy: MicrobatchScorer, models: Mapping[str, Scorer], batch: Batch, names: Collection[str]
) -> Batch:
    """The batch with further measured signals.

    Args:
        policy: Computes its own signals, and comparisons with other models such as `jsd@ref`.
        models: Auxiliary models by name: `logp@ref` is the signal `logp` of `models["ref"]`.
        batch: The batch; signals that it already has are not computed again.
        names: Names of the signals.
    """
    for name in sorted(set(names) - set(batch.signals)):
        signal, model = split_name(name)
        scorer = policy
        scorer_signal = name
        if model and not is_comparison(name):
            scorer = models[model]
            scorer_signal = signal
        by_group = scorer_signal in GROUP_SIGNALS
        evaluate = _evaluate_by_group if by_group else partial(evaluate_all, policy)
        values = evaluate(scorer, batch, [scorer_signal])
        batch = batch.with_signals({name: values[scorer_signal]})
    return batch


def _evaluate_by_group(scorer: Scorer, batch: Batch, names: Collection[str]) -> SignalDict:
    """Signals that depend on all rows of a group; micro-batches are groups, whatever their size."""
    microbatches = (
        (batch.row_group == group).nonzero()[:, 0] for group in batch.row_group.unique()
    )
    return _evaluate_rows(scorer, batch, names, microbatches)


@torch.no_grad()
def evaluate_all(
    policy: MicrobatchScorer, scorer: Scorer, batch: Batch, names: Collection[str]
) -> SignalDict:
    """Signals of every row without gradients, in the micro-batches of `policy`."""
    return _evaluate_rows(scorer, batch, names, policy.microbatches(batch))


def _evaluate_rows(
    scorer: Scorer, batch: Batch, names: Collection[str], microbatches: Iterator[Tensor]
) -> SignalDict:
    out = {name: torch.zeros_like(batch.old_logp) for name in names}
    for rows in microbatches:
        signals = scorer.signals(batch.select_rows(rows), names)
        for name in names:
            out[name][rows] = signals[name].to(out[name])
    return SignalDict(out)


def accumulate_gradients(
    policy: MicrobatchScorer,
    method: Method,
    batch: Batch,
    token_hook: TokenHook = no_hook,
    *,
    measure_all_rows: bool = False,
) -> dict[str, float]:
    """Add the gradient of sum(weight x loss) to the policy's parameters; returns metrics.

    The sum is over the whole minibatch, so that the gradient does not depend on micro-batches. If
    the loss couples rows, it is differentiated with respect to the signals first, then the signals
    with respect to the parameters: exact, at the cost of one more forward pass.

    Args:
        policy: The policy; gradients are accumulated in its parameters.
        method: Its aggregation and loss are used.
        batch: The minibatch, with advantages.
        token_hook: Receives, for each micro-batch, signals and metrics of the loss per action.
        measure_all_rows: Evaluate rows without gradient, too, so that they count in the metrics: a
            controller that reads a metric needs it of all rows.
    """
    weight = method.aggregation(batch)
    # sorted: the order of signals decides the order in which autograd adds their gradients
    names = sorted({"logp", "entropy", *method.requires.recomputed_signals})
    metrics = _UpdateMetrics(token_hook)
    if method.requires.coupled_rows:
        _two_passes(policy, method, batch, weight, names, metrics)
    else:
        rows = _rows_with_gradient(method, batch, weight, measure_all_rows)
        _one_pass(policy, method, batch.select_rows(rows), weight[rows], names, metrics)
    return metrics.means()


def _one_pass(
    policy: MicrobatchScorer,
    method: Method,
    batch: Batch,
    weight: Tensor,
    names: Collection[str],
    metrics: "_UpdateMetrics",
) -> None:
    for rows in policy.microbatches(batch):
        microbatch = batch.select_rows(rows)
        pi = _evaluate_policy(policy, microbatch, names)
        loss = (weight[rows] * method.loss(pi, microbatch)).sum()
        loss.backward()
        metrics.add(method, pi, microbatch, loss)


def _two_passes(
    policy: MicrobatchScorer,
    method: Method,
    batch: Batch,
    weight: Tensor,
    names: Collection[str],
    metrics: "_UpdateMetrics",
) -> None:
    signals = evaluate_all(policy, policy, batch, names)
    pi = Signals({name: signal.requires_grad_() for name, signal in signals.items()})
    loss = (weight * method.loss(pi, batch)).sum()
    loss.backward()
    metrics.add(method, pi, batch, loss)
    gradients = {name: signal.grad for name, signal in pi.items() if signal.grad is not None}
    has_gradient = [(gradient != 0).any(1) for gradient in gradients.values()]
    trained = torch.stack(has_gradient).any(0).nonzero()[:, 0]
    for indices in policy.microbatches(batch.select_rows(trained)):
        rows = trained[indices]
        live = _evaluate_policy(policy, batch.select_rows(rows), names)
        torch.autograd.backward(
            [live[name] for name in gradients],
            [gradient[rows] for gradient in gradients.values()],
        )


def _rows_with_gradient(
    method: Method, batch: Batch, weight: Tensor, measure_all_rows: bool
) -> Tensor:
    """Indices of the rows that can have a gradient, or of all weighted rows."""
    counted = batch.mask & (weight != 0)
    if method.loss.zero_if_no_advantage and not measure_all_rows:
        counted &= batch.advantage != 0
    return counted.any(1).nonzero()[:, 0]


def _evaluate_policy(policy: MicrobatchScorer, batch: Batch, names: Collection[str]) -> Signals:
    """The policy's signals on the batch's device; gradients flow back to the policy's device."""
    signals = policy.signals(batch, names)
    pi = Signals({name: x.to(batch.old_logp.device) for name, x in signals.items()})
    if pi.logp.requires_grad:
        pi.logp.retain_grad()  # for the metric update/advantage_alignment
    return pi


class _UpdateMetrics:
    """Sums metrics over the actions of a minibatch."""

    def __init__(self, token_hook: TokenHook) -> None:
        self.token_hook = token_hook
        self.loss = 0.0
        self.sums: defaultdict[str, float] = defaultdict(float)
        self.counts: defaultdict[str, int] = defaultdict(int)
        self.largest_mismatch: dict[str, float] = {"sampler_mismatch/logp_diff_max": 0.0}
        self.alignment_sums = torch.zeros(3, dtype=torch.float64)

    @torch.no_grad()
    def add(self, method: Method, pi: Signals, batch: Batch, loss: Tensor) -> None:
        self.loss += loss.item()
        self._sum("policy/entropy", pi.entropy, batch.mask)
        self._sum("update/kl_old", k3(batch.old_logp, pi.logp), batch.mask)
        loss_metrics = method.loss.metrics(pi, batch)
        ratio = pi.logp - batch.old_logp
        self.token_hook(batch, {**loss_metrics, "entropy": pi.entropy, "ratio": ratio})
        for name, value in loss_metrics.items():
            self._sum(name, value, batch.mask)
        self._add_mismatch(pi, batch)
        if pi.logp.grad is not None:
            self.alignment_sums += _alignment_sums(
                -pi.logp.grad[batch.mask], batch.advantage[batch.mask]
            ).cpu()

    def _add_mismatch(self, pi: Signals, batch: Batch) -> None:
        """Differences between the trainer's and the sampler's log-probs, where both are defined."""
        signals = batch.signals
        sampled = batch.mask & (signals["sampled"] > 0) & (signals["off_context"] == 0)
        difference = torch.where(sampled, pi.logp - signals["logp@sampler"], 0.0)
        self._sum("sampler_mismatch/logp_diff_mean", difference.abs(), sampled)
        self._sum("sampler_mismatch/kl", k3(difference * 0, difference), sampled)
        if difference.numel():
            self._update_largest_mismatch(difference.abs(), batch)

    def _update_largest_mismatch(self, difference: Tensor, batch: Batch) -> None:
        """Record the action at which sampler and trainer differ most."""
        place = divmod(int(difference.argmax()), difference.shape[1])
        largest = difference[place].item()
        if largest > self.largest_mismatch["sampler_mismatch/logp_diff_max"]:
            signals = batch.signals
            token = signals["step/item"][place].item() if "step/item" in signals else 0.0
            self.largest_mismatch = {
                "sampler_mismatch/logp_diff_max": largest,
                "sampler_mismatch/max_rollout": float(batch.rollout[place[0]]),
                "sampler_mismatch/max_action": float(place[1]),
                "sampler_mismatch/max_token": token,
            }

    def _sum(self, name: str, value: Tensor, mask: Tensor) -> None:
        self.sums[name] += torch.where(mask, value.double(), 0.0).sum().item()
        self.counts[name] += int(mask.sum())

    def means(self) -> dict[str, float]:
        means = {name: x / self.counts[name] for name, x in self.sums.items() if self.counts[name]}
        num_actions = float(self.counts["policy/entropy"])
        out = {"loss": self.loss, "tokens/backpropagated": num_actions, **means}
        product, direction, advantage = self.alignment_sums.tolist()
        if direction * advantage > 0:
            out["update/advantage_alignment"] = product / (direction * advantage) ** 0.5
        return out | self.largest_mismatch if "sampler_mismatch/logp_diff_mean" in means else out


def _alignment_sums(direction: Tensor, advantage: Tensor) -> Tensor:
    """The three sums in the cosine of the log-prob update direction and the advantages."""
    direction = direction.double()
    advantage = advantage.double()
    return torch.stack([(direction * advantage).sum(), (direction**2).sum(), (advantage**2).sum()])
