"""Metrics of a minibatch: sums over its actions, on this rank and on the other ranks."""

from collections import defaultdict
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from grupo.algo.divergences import k3
from grupo.core.batch import Batch, Signals
from grupo.distributed.base import Ranks
from grupo.distributed.exchange import exchange_json, sum_counts
from grupo.distributed.phase import Phase
from grupo.method import Method

TokenHook = Callable[[Batch, Mapping[str, Tensor]], None]  # (batch, signals per action) -> None
LARGEST = "sampler_mismatch/logp_diff_max"


class UpdateMetrics:
    """Sums metrics over the actions of a minibatch."""

    def __init__(self, token_hook: TokenHook) -> None:
        self.token_hook = token_hook
        self.loss = 0.0
        self.sums: defaultdict[str, float] = defaultdict(float)
        self.counts: defaultdict[str, int] = defaultdict(int)
        self.largest_mismatch: dict[str, float] = {LARGEST: 0.0}
        self.alignment_sums = torch.zeros(3, dtype=torch.float64)  # of `_alignment_sums`

    @torch.no_grad()
    def add(self, method: Method, pi: Signals, batch: Batch, loss: Tensor) -> None:
        """Add the sums of a micro-batch; `pi` has the policy's signals in this update."""
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
        row, action = divmod(int(difference.argmax()), difference.shape[1])
        largest = difference[row, action].item()
        if largest > self.largest_mismatch[LARGEST]:
            signals = batch.signals
            token = signals["step/item"][row, action].item() if "step/item" in signals else 0.0
            self.largest_mismatch = {
                LARGEST: largest,
                "sampler_mismatch/max_rollout": float(batch.rollout[row]),
                "sampler_mismatch/max_action": float(action),
                "sampler_mismatch/max_token": token,
            }

    def _sum(self, name: str, value: Tensor, mask: Tensor) -> None:
        self.sums[name] += torch.where(mask, value.double(), 0.0).sum().item()
        self.counts[name] += int(mask.sum())

    def add_other_ranks(self, ranks: Ranks) -> None:
        """Add the sums of the other ranks, which have other rows of the minibatch."""
        of_this_rank = {
            "loss": self.loss,
            "sums": self.sums,
            "counts": self.counts,
            "largest": self.largest_mismatch,
            "alignment": self.alignment_sums.tolist(),
        }
        of_ranks = exchange_json(ranks, of_this_rank, Phase.GRADIENTS_ACCUMULATED)
        self.loss = sum(x["loss"] for x in of_ranks)
        self.sums = defaultdict(float, sum_counts(x["sums"] for x in of_ranks))
        self.counts = defaultdict(int, sum_counts(x["counts"] for x in of_ranks))
        self.largest_mismatch = max((x["largest"] for x in of_ranks), key=lambda x: x[LARGEST])
        alignments = [torch.tensor(x["alignment"], dtype=torch.float64) for x in of_ranks]
        self.alignment_sums = torch.stack(alignments).sum(0)

    def means(self) -> dict[str, float]:
        """The metrics of the minibatch, by name."""
        means = {name: x / self.counts[name] for name, x in self.sums.items() if self.counts[name]}
        num_actions = float(self.counts["policy/entropy"])
        out = {"loss": self.loss, "tokens/backpropagated": num_actions, **means}
        product, squared_direction, squared_advantage = self.alignment_sums.tolist()
        if (squared_norms := squared_direction * squared_advantage) > 0:
            out["update/advantage_alignment"] = product / squared_norms**0.5
        return out | self.largest_mismatch if "sampler_mismatch/logp_diff_mean" in means else out


def _alignment_sums(direction: Tensor, advantage: Tensor) -> Tensor:
    """The sums from which the cosine of advantages and direction is computed.

    Args:
        direction: Negative gradient of the loss with respect to each action's logp, (actions,).
        advantage: Advantage of each action, (actions,).
    """
    direction = direction.double()
    advantage = advantage.double()
    return torch.stack([(direction * advantage).sum(), (direction**2).sum(), (advantage**2).sum()])
