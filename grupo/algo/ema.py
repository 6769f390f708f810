"""Exponential moving average (EMA) of the trained weights."""

from collections.abc import Mapping

import torch
from torch import Tensor

from grupo.core.component import component
from grupo.core.ranges import OpenProbability


@component
class EMA:
    """After each optimizer update: average = decay * average + (1 - decay) * weights, in float32.

    The average starts at the initial weights. Training does not read it.

    Args:
        decay: Weight of the average so far; it covers about 1 / (1 - decay) updates.
    """

    decay: OpenProbability = 0.999

    def initial(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The average before the first update: a copy of the weights in float32."""
        return {name: weight.detach().float().clone() for name, weight in weights.items()}

    @torch.no_grad()
    def update(self, average: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
        """Move the average towards the weights, in place.

        >>> average = EMA(0.75).initial({"w": torch.tensor([4.0])})
        >>> EMA(0.75).update(average, {"w": torch.tensor([8.0])})
        >>> average["w"]
        tensor([5.])
        """
        for name, weight in weights.items():
            average[name].lerp_(weight.float(), 1 - self.decay)
