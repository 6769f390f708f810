"""The routers of a model in a forward pass over rows of tokens, packed or padded."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from grupo.algo.load_balancing import RouterSums, router_sums, token_costs
from grupo.kernels.hidden_states import select_rows
from grupo.kernels.routing import OWN_CHOICE, RouterPass, Routers
from grupo.util.device_copies import to_device


class RowRouting:
    """Router results for rows of tokens, and experts that are given to the routers.

    Args:
        routers: those of the model.
        routes: experts to use for each token, one layer after another; `OWN_CHOICE` where the
            router chooses. Default: the routers choose.
    """

    def __init__(self, routers: Routers, routes: Int[Tensor, "N L layers*k"] | None = None) -> None:
        self.routers = routers
        self.routes = routes
        self.router_pass = RouterPass()
        self.index = torch.zeros(0, 0, dtype=torch.long)
        self.counted = torch.zeros(0, 0)

    def start(
        self, index: Int[Tensor, "N L"], length: Int[Tensor, "N"], tokens: int, device: torch.device
    ) -> RouterPass:
        """The pass of the routers over some tokens, of which the rows consist.

        Rows that share a token use the experts that are given to it in the first of them.

        Args:
            index: of each row's tokens in the pass.
            length: tokens of each row that count.
            tokens: number of tokens in the pass.
            device: of the model.
        """
        counted = torch.arange(index.shape[1]) < length.cpu()[:, None]
        self.index = to_device(index, device)
        self.counted = to_device(counted.float(), device)
        given = None
        if self.routes is not None:
            given = self._given(self.routes, index.cpu(), length.tolist(), tokens).to(device)
        self.router_pass = RouterPass(given)
        return self.router_pass

    def _given(
        self, routes: Tensor, index: Tensor, lengths: list[int], tokens: int
    ) -> Int[Tensor, "layers M k"]:
        given = torch.full((tokens, routes.shape[2]), OWN_CHOICE, dtype=torch.long)
        for row in reversed(range(len(lengths))):
            columns = (routes[row, : lengths[row], 0] != OWN_CHOICE).nonzero()[:, 0]
            given[index[row, columns]] = routes[row, columns].long()
        return given.unflatten(1, (self.routers.layers, self.routers.top_k)).transpose(0, 1)

    @property
    def _logits(self) -> list[Tensor]:
        """The routers' logits, layer by layer."""
        return [self.router_pass.logits[layer] for layer in range(self.routers.layers)]

    def sums(self) -> RouterSums:
        """The sums over the tokens of all rows; those of a shared prefix count for each row."""
        logits = self._logits
        count = torch.zeros(len(logits[0]), device=logits[0].device)
        count = count.index_add(0, self.index.reshape(-1), self.counted.reshape(-1))
        chosen = [self.router_pass.chosen[layer] for layer in range(self.routers.layers)]
        given = self.router_pass.given
        is_given = count < 0 if given is None else given[0, :, 0] != OWN_CHOICE
        return router_sums(logits, chosen, count, is_given)

    def row_costs(self, expert_cost: Float[Tensor, "experts"]) -> Float[Tensor, "N"]:
        """Each row's share of the load-balancing loss, differentiable."""
        costs = token_costs(self._logits, to_device(expert_cost, self.index.device))
        by_row = select_rows(costs, self.index.reshape(-1)).view(self.index.shape)
        return (by_row * self.counted).sum(1)
