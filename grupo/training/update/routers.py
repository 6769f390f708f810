"""The routers of a mixture of experts in an update: their load-balancing loss and statistics."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from grupo.algo.load_balancing import RouterSums
from grupo.core.batch import Batch, Signals
from grupo.core.signal_names import EXPERT_COST, ROUTER_LOSS
from grupo.distributed.base import Ranks
from grupo.distributed.exchange import raise_out_of_memory_on_all_ranks
from grupo.distributed.phase import Phase
from grupo.training.update.signals import MicrobatchSignalModel, microbatches_by_rank

if TYPE_CHECKING:  # its import takes two seconds, which policies of other kinds need not wait for
    from grupo.models.policy_routers import PolicyRouters


@runtime_checkable
class RoutedPolicy(MicrobatchSignalModel, Protocol):
    """A policy that may be a mixture of experts."""

    routers: "PolicyRouters | None"

    def router_sums(self, batch: Batch) -> RouterSums:
        """Sums over the tokens of a batch, without a gradient."""
        ...


class RouterUpdate:
    """Adds the loss and the statistics of the routers of a policy to the update of a minibatch.

    A dense policy has no routers, and nothing is added.

    Args:
        policy: The policy.
        ranks: The processes that share the rows.
    """

    def __init__(self, policy: MicrobatchSignalModel, ranks: Ranks) -> None:
        self.policy: Any = policy
        self.routers = policy.routers if isinstance(policy, RoutedPolicy) else None
        self.ranks = ranks
        if self.routers:
            shape = self.routers.sizes.layers, self.routers.sizes.experts
            zeros = torch.zeros(shape, dtype=torch.float64)
            self.sums = RouterSums(zeros, zeros, zeros.sum(), zeros.sum())

    @property
    def signal_names(self) -> set[str]:
        """The signal whose sum is the load-balancing loss, if there is one."""
        return {ROUTER_LOSS} if self.routers and self.routers.aux_loss else set()

    def prepare(self, batch: Batch) -> Batch:
        """The minibatch with the input `EXPERT_COST`, from which each token's loss is computed.

        The cost depends on all rows. If one micro-batch has all rows, the minibatch is returned
        unchanged. Otherwise this method runs a forward pass without gradients.
        """
        if not self.signal_names:
            return batch
        own = microbatches_by_rank(self.policy, batch, self.ranks)[self.ranks.rank]
        if self.ranks.size == 1 and len(own) == 1:
            return batch
        sums = self.sums
        with raise_out_of_memory_on_all_ranks(self.ranks), torch.no_grad():
            for rows in own:
                sums = sums + _on_cpu(self.policy.router_sums(batch.select_rows(rows)))
        cost = self._of_all_ranks(sums).expert_cost.expand(len(batch.mask), -1)
        return replace(batch, inputs={**batch.inputs, EXPERT_COST: cost})

    def loss(self, policy_signals: Signals) -> Tensor | float:
        """The load-balancing loss of the rows of `policy_signals`, times its coefficient."""
        return policy_signals[ROUTER_LOSS].sum() if self.signal_names else 0.0

    def add_last_rows(self) -> None:
        """Add the rows of the policy's last forward pass to the statistics."""
        if self.routers and self.routers.last_sums:
            self.sums = self.sums + _on_cpu(self.routers.last_sums)

    def metrics(self) -> dict[str, float]:
        """Statistics of the routers over the rows of all ranks."""
        if not self.routers:
            return {}
        sums = self._of_all_ranks(self.sums)
        values = sums.metrics()
        if values and self.routers.is_replayed:
            values["router/replayed_frac"] = float(sums.given / sums.tokens)
        return values

    def _of_all_ranks(self, sums: RouterSums) -> RouterSums:
        parts = [x.clone() for x in vars(sums).values()]
        self.ranks.sum(parts, Phase.ROUTERS_COUNTED)
        return RouterSums(*parts)


def _on_cpu(sums: RouterSums) -> RouterSums:
    return RouterSums(*(x.cpu() for x in vars(sums).values()))
