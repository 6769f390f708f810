"""Links: the loss of a pair as a function of its score difference z.

A link is a function of a tensor, applied to each entry.
"""

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from grupo.core.component import check_field, component
from grupo.core.dynamic_number import DynamicNumber
from grupo.core.numbers import Fraction, NumberOrSchedule, OpenFraction, Positive


@component
class Logistic:
    """-(1 - label_smoothing) log sigmoid(beta z) - label_smoothing log sigmoid(-beta z).

    Source: DPO, Rafailov et al., arXiv:2305.18290, eq. 7; with label smoothing "conservative DPO".

    Args:
        beta: inverse temperature.
        label_smoothing: assumed probability that a pair is the wrong way round.

    >>> Logistic(beta=1.0)(torch.tensor([0.0]))
    tensor([0.6931])
    """

    beta: Positive
    label_smoothing: Fraction = 0.0

    def __call__(self, z: Tensor) -> Tensor:
        return softplus(-self.beta * z) + self.label_smoothing * self.beta * z


@component
class RobustLogistic:
    """((1 - e) l(z) - e l(-z)) / (1 - 2 e), l(z) = -log sigmoid(beta z), e the flip rate.

    If a fraction e of the pairs is the wrong way round, the mean of this loss over all pairs is the
    mean of l over pairs that are right.
    Source: Chowdhury et al., arXiv:2403.00409.

    Args:
        beta: inverse temperature.
        flip_rate: probability that a pair is the wrong way round, below 1/2.

    >>> RobustLogistic(beta=1.0, flip_rate=0.25)(torch.tensor([0.0]))
    tensor([0.6931])
    """

    beta: Positive
    flip_rate: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.flip_rate, DynamicNumber):
            check_field(self, "flip_rate", self.flip_rate < 0.5, "0 or more, below 0.5")

    def __call__(self, z: Tensor) -> Tensor:
        right, flipped = softplus(-self.beta * z), softplus(self.beta * z)
        e = self.flip_rate
        return ((1 - e) * right - e * flipped) / (1 - 2 * e)


@component
class Hinge:
    """max(0, 1 - beta z). Source: SLiC, Zhao et al., arXiv:2305.10425; RSO, arXiv:2309.06657.

    Args:
        beta: the loss is 0 from z = 1 / beta on.

    >>> Hinge(beta=0.5)(torch.tensor([0.0, 1.0, 4.0]))
    tensor([1.0000, 0.5000, 0.0000])
    """

    beta: Positive

    def __call__(self, z: Tensor) -> Tensor:
        return (1 - self.beta * z).clamp(min=0)


@component
class SquaredError:
    """(z - target)^2. Source: IPO, Azar et al., arXiv:2310.12036, eq. 17.

    Args:
        target: value of z at which the loss is 0; positive where the chosen should score higher.

    >>> SquaredError(target=2.0)(torch.tensor([0.5]))
    tensor([2.2500])
    """

    target: NumberOrSchedule

    def __call__(self, z: Tensor) -> Tensor:
        return (z - self.target) ** 2


@component
class ExponentialLink:
    """exp(-beta z). Source: the family of Tang et al., arXiv:2402.05749.

    Args:
        beta: inverse temperature.

    >>> ExponentialLink(beta=1.0)(torch.tensor([0.0]))
    tensor([1.])
    """

    beta: Positive

    def __call__(self, z: Tensor) -> Tensor:
        return (-self.beta * z).exp()


@component
class Sigmoid:
    """sigmoid(-beta z) = 1 - sigmoid(beta z): bounded, so that outliers have no gradient.

    Source: APO, D'Oosterlinck et al., arXiv:2408.06266, eq. 7 and 8.

    Args:
        beta: inverse temperature; a negative one rises with z.

    >>> Sigmoid(beta=1.0)(torch.tensor([0.0]))
    tensor([0.5000])
    """

    beta: NumberOrSchedule

    def __call__(self, z: Tensor) -> Tensor:
        return (-self.beta * z).sigmoid()


@component
class ReverseLogistic:
    """KL(q || p), q = (sigmoid(beta z), sigmoid(-beta z)), p = (1 - e, e), e the label smoothing.

    Source: EXO, Ji et al., arXiv:2402.00856, eq. 16.

    Args:
        beta: inverse temperature.
        label_smoothing: probability of the rejected answer in p, above 0 and below 1.

    >>> ReverseLogistic(beta=1.0, label_smoothing=0.5)(torch.tensor([0.0]))
    tensor([0.])
    """

    beta: Positive
    label_smoothing: OpenFraction = 1e-3

    def __call__(self, z: Tensor) -> Tensor:
        p = z.new_tensor(self.label_smoothing)
        chosen, rejected = logsigmoid(self.beta * z), logsigmoid(-self.beta * z)
        return chosen.exp() * (chosen - torch.log1p(-p)) + rejected.exp() * (rejected - p.log())


@component
class LogisticExponentialMix:
    """(1 - m) log(1 + e^-x) + m e^-x, x = beta z, m = sigmoid(x / tau).

    Source: DiscoPOP, Lu et al., arXiv:2406.08414, eq. 5.

    Args:
        beta: inverse temperature.
        tau: width in x over which the loss changes from logistic to exponential.

    >>> LogisticExponentialMix(beta=1.0)(torch.tensor([0.0]))
    tensor([0.8466])
    """

    beta: Positive
    tau: Positive = 0.05

    def __call__(self, z: Tensor) -> Tensor:
        x = self.beta * z
        m = (x / self.tau).sigmoid()
        return (1 - m) * softplus(-x) + m * (-x).exp()
