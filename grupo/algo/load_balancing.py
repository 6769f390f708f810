"""The load-balancing loss of mixtures of experts, and statistics of their routers.

Fedus et al., 2022, arXiv:2101.03961, eq. 4 to 6, with several experts for a token and all layers
taken together, as in `load_balancing_loss_func` of transformers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class RouterSums:
    """Sums over tokens of what the routers of a model compute; sums of two sets of tokens add up.

    Args:
        chosen: number of tokens for which each expert was chosen.
        probability: sum of each expert's probability, softmax over the router's logits.
        tokens: number of tokens, each of which passes the router of every layer.
        given: number of tokens whose experts were given instead of chosen.
    """

    chosen: Float[Tensor, "layers experts"]
    probability: Float[Tensor, "layers experts"]
    tokens: Float[Tensor, ""]
    given: Float[Tensor, ""]

    def __add__(self, other: "RouterSums") -> "RouterSums":
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return RouterSums(*(a + b for a, b in pairs))

    @property
    def expert_cost(self) -> Float[Tensor, "experts"]:
        """The loss per unit of an expert's summed probability: E f_e / (L N).

        The loss is E sum_e f_e P_e for E experts, L layers and N tokens. f_e is the number of times
        that expert e was chosen, divided by L N; it has no gradient. P_e is the mean probability of
        the expert over layers and tokens. Once f_e of all tokens is known, the loss is a sum over
        tokens, so that the losses of micro-batches add up to it.
        """
        num_passes = self.chosen.shape[0] * self.tokens
        return self.chosen.shape[1] * self.chosen.sum(0) / num_passes**2

    def metrics(self) -> dict[str, float]:
        """The loss, the largest load of an expert, and the fraction of experts without a token.

        >>> four, none = torch.tensor(4), torch.tensor(0)
        >>> sums = RouterSums(torch.tensor([[3.0, 1.0]]), torch.tensor([[2.0, 2.0]]), four, none)
        >>> sums.metrics()
        {'router/aux_loss': 1.0, 'router/max_load': 1.5, 'router/dead_experts': 0.0}
        """
        if not self.tokens:
            return {}
        even_load = self.chosen.mean(1, keepdim=True)
        return {
            "router/aux_loss": float(self.expert_cost @ self.probability.sum(0)),
            "router/max_load": float((self.chosen / even_load).max()),
            "router/dead_experts": float((self.chosen == 0).double().mean()),
        }


def router_sums(
    logits: Sequence[Float[Tensor, "M experts"]],
    chosen: Sequence[Int[Tensor, "M k"]],
    count: Float[Tensor, "M"],
    is_given: Bool[Tensor, "M"],
) -> RouterSums:
    """The sums over M tokens, of which each counts `count` times, in float64.

    Args:
        logits: of the router of each layer.
        chosen: the experts that the router of each layer chose.
        count: 0 for padding; the number of rows for a token of a prefix that rows share.
        is_given: whether the experts of a token were given.
    """
    numbers = list[Tensor]()
    for layer_logits, experts in zip(logits, chosen, strict=True):
        weight = count[:, None].expand_as(experts).reshape(-1)
        zeros = count.new_zeros(layer_logits.shape[1])
        numbers.append(zeros.index_add(0, experts.reshape(-1), weight))
    probabilities = [count @ x.detach().to(count).softmax(-1) for x in logits]
    tokens = count.sum(), (count * is_given).sum()
    sums = torch.stack(numbers), torch.stack(probabilities), *tokens
    return RouterSums(*(x.double() for x in sums))


def token_costs(
    logits: Sequence[Float[Tensor, "M experts"]], expert_cost: Float[Tensor, "experts"]
) -> Float[Tensor, "M"]:
    """Each token's share of the loss, differentiable in the logits.

    Args:
        logits: of the router of each layer.
        expert_cost: that of `RouterSums`, of all tokens of an update.
    """
    wide = torch.promote_types(logits[0].dtype, torch.float32)
    probabilities = torch.stack([x.to(wide).softmax(-1) for x in logits]).sum(0)
    return probabilities @ expert_cost.to(wide)
