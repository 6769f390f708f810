"""A softmax policy with a table of logits and weights of features that cells share."""

from collections.abc import Collection, Iterator, Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from grupo.core.aux_heads import AuxHead
from grupo.core.batch import Batch, Signals
from grupo.core.signal_names import split_name
from grupo.evidence.claims.environments import TabularEnv
from grupo.models.aux_heads import AuxHeads
from grupo.models.token_statistics import DIVERGENCES, TOKEN_SIGNALS

CELL = "step/cell"  # signal with the cell before each action
ITEM = "step/item"  # signal with the item of each action


class LinearPolicy:
    """log pi = log_softmax(prior + table[own] + common @ weight); table and weight begin at 0.

    Args:
        env: Its features and prior logits are the policy's.
        aux_heads: Heads to train beside the policy, linear in the same features.
    """

    is_sharded = False

    def __init__(self, env: TabularEnv, aux_heads: Collection[AuxHead] = ()) -> None:
        self.own = torch.as_tensor(env.own)
        self.common = torch.as_tensor(env.common, dtype=torch.float32)
        self.prior = torch.as_tensor(env.prior, dtype=torch.float32)
        self.num_own = int(self.own.max()) + 1
        num_common = self.common.shape[1]
        num_items = self.prior.shape[1]
        self.table = nn.Parameter(torch.zeros(self.num_own, num_items))
        self.weight = nn.Parameter(torch.zeros(num_common, num_items))
        self.heads = AuxHeads(aux_heads, self.num_own + num_common, torch.device("cpu"))
        self.compared: Mapping[str, LinearPolicy] = {}  # models that `reverse_kl@ref` refers to

    def logp_table(self) -> Tensor:
        """Log-probability of each item in each cell (S, A)."""
        return self.logp_in(torch.arange(len(self.own)))

    def logp_in(self, cell: Tensor) -> Tensor:
        """Log-probability of each item in some cells (m, A)."""
        logits = self.prior[cell] + self.table[self.own[cell]] + self.common[cell] @ self.weight
        return logits.log_softmax(-1)

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """Signals of every action by name, each (N, T), 0 where masked."""
        cell = batch.signals[CELL][batch.mask].long()
        item = batch.signals[ITEM][batch.mask].long()
        logp = self.logp_in(cell)
        zeros = torch.zeros(batch.mask.shape)
        values = {name: self._token_values(name, logp, cell, item) for name in names}
        return Signals({name: zeros.masked_scatter(batch.mask, x) for name, x in values.items()})

    def _token_values(self, name: str, logp: Tensor, cell: Tensor, item: Tensor) -> Tensor:
        signal, model = split_name(name)
        if model:
            with torch.no_grad():
                other_logp = self.compared[model].logp_in(cell)
            return DIVERGENCES[signal](logp, other_logp)
        if signal in self.heads.names:
            own = one_hot(self.own[cell], self.num_own)
            return self.heads.predict(signal, torch.cat([own, self.common[cell]], dim=1))
        return TOKEN_SIGNALS[signal](logp, item)

    def microbatches(self, batch: Batch) -> Iterator[Tensor]:
        """All rows together."""
        yield torch.arange(len(batch.mask))

    def parameters(self) -> list[nn.Parameter]:
        """Table and weight; heads have an optimizer of their own."""
        return [self.table, self.weight]

    @torch.no_grad()
    def move_towards(self, other: "LinearPolicy", rate: float) -> None:
        """Move the parameters a fraction of the way to those of another policy."""
        for own, target in zip(self.parameters(), other.parameters(), strict=True):
            own.lerp_(target, rate)
