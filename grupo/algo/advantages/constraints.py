"""Constrained rewards: they count only for feasible rollouts, or near the reference policy.

Source: constrained RLHF of CGPO, Xu et al., arXiv:2409.20370.
"""

import torch
from torch import Tensor

from grupo.algo.advantages.intrinsic import ref_log_ratio
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NumberOrSchedule, Positive
from grupo.core.requires import Requires


def argmax_share(x: Tensor, candidates: Tensor, group: Tensor) -> Tensor:
    """One-hot argmax of `x` among the candidates of each group, (R,); ties share the 1 equally.

    Args:
        x: values, (R,).
        candidates: mask of the rollouts that can be selected, (R,).
        group: group labels, (R,).

    Returns:
        1 / (number of ties) for the largest candidates, else 0; all 0 without candidates.

    >>> x, feasible = torch.tensor([5.0, 2.0, 2.0]), torch.tensor([False, True, True])
    >>> argmax_share(x, feasible, torch.tensor([0, 0, 0]))
    tensor([0.0000, 0.5000, 0.5000])
    """
    largest = group_ops.max(x.masked_fill(~candidates, -torch.inf), group)
    is_largest = (candidates & (x == largest)).to(x)
    return is_largest / group_ops.sum(is_largest, group).clamp(min=1)


def best_of_group(x: Tensor, batch: Batch) -> Tensor:
    """x for the best rollout of each group, 0 for the others, (R,); ties share x equally.

    >>> from grupo.testing.batches import make_batch
    >>> best_of_group(torch.tensor([3.0, 1.0, 4.0, 4.0]), make_batch(group=[0, 0, 1, 1]))
    tensor([3., 0., 2., 2.])
    """
    return x * argmax_share(x, torch.ones_like(x).bool(), batch.group)


@component
class CalibratedReward:
    """F sigmoid(r - r_base), (R,): F is 1 for feasible rollouts, else 0.

    Args:
        feasible: name of the reward term that is 1 where all judges accept the answer.
        baseline: name of the reward term with the reward of the prompt's baseline answer.

    >>> from grupo.testing.batches import make_batch
    >>> terms = {"feasible": [1.0, 0.0], "baseline": [2.0, 2.0]}
    >>> batch = make_batch(group=[0, 0], reward_terms=terms)
    >>> CalibratedReward()(torch.tensor([2.0, 9.0]), batch).tolist()
    [0.5, 0.0]
    """

    feasible: str = "feasible"
    baseline: str = "baseline"

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.feasible, self.baseline))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        is_feasible = batch.reward_terms[self.feasible] == 1
        return is_feasible * (x - batch.reward_terms[self.baseline]).sigmoid()


@component
class KLDiscounted:
    """x max(0, 1 - k / max_kl), k = log pi_old(y) - log pi_ref(y) of the whole rollout y, (R,).

    Args:
        max_kl: k at which the reward reaches 0, in nats.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0], logp=-1.0, signals={"logp@ref": [[-1.5]]})  # k = 0.5
    >>> KLDiscounted(2.0)(torch.tensor([4.0]), batch).tolist()
    [3.0]
    """

    max_kl: Positive

    requires = Requires(signals=("logp@ref",))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x * (1 - ref_log_ratio(batch).to(x) / self.max_kl).clamp(min=0)


@component
class KLGated:
    """x where k = log pi_old(y) - log pi_ref(y) <= max_kl, else 0, (R,).

    Args:
        max_kl: largest k of a rollout that keeps its reward, in nats.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0], logp=-1.0, signals={"logp@ref": [[-1.5], [-4.0]]})
    >>> KLGated(2.0)(torch.tensor([4.0, 4.0]), batch).tolist()  # k = 0.5 and 3
    [4.0, 0.0]
    """

    max_kl: NumberOrSchedule

    requires = Requires(signals=("logp@ref",))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x * (ref_log_ratio(batch) <= self.max_kl)
