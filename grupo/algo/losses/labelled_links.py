"""Links of labelled answers: the loss of a chosen or a rejected answer by its score z.

The links in `grupo.algo.losses.links` are also losses of a chosen answer by its score.
"""

from torch import Tensor
from torch.nn.functional import softplus

from grupo.core.component import component
from grupo.core.numbers import Positive


def no_loss(z: Tensor) -> Tensor:
    """The loss 0 of any score.

    >>> import torch
    >>> no_loss(torch.tensor([2.0]))
    tensor([0.])
    """
    return z * 0.0


@component
class NegatedLogistic:
    """-log sigmoid(-beta z), of a rejected answer.

    Args:
        beta: inverse temperature.

    >>> import torch
    >>> NegatedLogistic(beta=1.0)(torch.tensor([0.0]))
    tensor([0.6931])
    """

    beta: Positive

    def __call__(self, z: Tensor) -> Tensor:
        return softplus(self.beta * z)


@component
class NoiseContrastive:
    """-log sigmoid(beta z) - 1/2 log sigmoid(-beta z), of a chosen answer.

    It has a minimum, beta z = log 2, so the likelihood of the chosen answer is not pushed without
    limit. Source: NCA, Chen et al., arXiv:2402.05369, two answers per prompt.

    Args:
        beta: inverse temperature.

    >>> import torch
    >>> NoiseContrastive(beta=1.0)(torch.tensor([0.0]))
    tensor([1.0397])
    """

    beta: Positive

    def __call__(self, z: Tensor) -> Tensor:
        return softplus(-self.beta * z) + softplus(self.beta * z) / 2


@component
class HalfLogistic:
    """-1/2 log sigmoid(-beta z), of a rejected answer. Source: NCA, arXiv:2402.05369.

    Args:
        beta: inverse temperature.

    >>> import torch
    >>> HalfLogistic(beta=1.0)(torch.tensor([0.0]))
    tensor([0.3466])
    """

    beta: Positive

    def __call__(self, z: Tensor) -> Tensor:
        return softplus(self.beta * z) / 2
