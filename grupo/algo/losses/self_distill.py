"""Mending: what went wrong is learned from a teacher that sees how a sibling went right.

SRPO, Li et al., arXiv:2604.02288.
"""

import torch
from jaxtyping import Bool
from torch import Tensor

from grupo.algo import ratios
from grupo.algo.losses.base import Loss
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component

REQUIRED_TERMS = ("correct",)


def self_distill_mask(batch: Batch) -> Bool[Tensor, "N 1"]:
    """Where a rollout is wrong and another of its group is right, (N, 1).

    >>> from grupo.testing.batch_sizes import batch_of
    >>> self_distill_mask(make_batch(group=[0, 0, 1], reward_terms={"correct": [1.0, 0.0, 0.0]})).flatten().tolist()
    [False, True, False]
    """
    right = batch.reward_terms["correct"]
    shown = group_ops.max(right, batch.group) > 0.5
    return (shown & (right <= 0.5))[batch.rollout, None]


@component
class SelfDistillOnFailure(Loss):
    """`strength` min(r, `cap`) JSD(pi, teacher) where there is something to mend, `rest` elsewhere.

    The ratio is a constant; the divergence is over all that could have been done.

    >>> from grupo.algo.losses.policy_gradient import Reinforce
    >>> from grupo.testing.batch_sizes import batch_of, moved
    >>> batch = make_batch(group=[0, 0], advantage=[1.0, -1.0], reward_terms={"correct": [1.0, 0.0]})
    >>> pi = moved(batch, [[0.0], [9.0]])
    >>> pi["jsd@hinted"] = torch.full((2, 1), 0.25)
    >>> SelfDistillOnFailure(Reinforce())(pi, batch).tolist()
    [[1.0], [0.5]]
    """

    policy_loss: Loss
    distill_coef: float = 1.0
    cap: float = 2.0
    teacher: str = "hinted"

    @property
    def required_signals(self) -> frozenset[str]:
        return super().required_signals | {f"jsd@{self.teacher}"}

    @property
    def recomputed_signals(self) -> frozenset[str]:
        return super().recomputed_signals | {f"jsd@{self.teacher}"}

    @property
    def has_stop_gradient(self) -> bool:
        return True

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """Who is right."""
        return REQUIRED_TERMS

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        r = ratios.token(pi, batch).detach().clamp(max=self.cap)
        mended = self.distill_coef * r * pi[f"jsd@{self.teacher}"]
        return torch.where(self_distill_mask(batch), mended, self.policy_loss(pi, batch))


@component
class TeacherConfidence:
    """A weigh: a mean over what is mended by exp(-H / `heat`), H the teacher's entropy; one of the
    rest.

    >>> from math import log
    >>> from grupo.testing.batch_sizes import batch_of
    >>> seen = {"entropy@hinted": [[0.0, log(3.0)], [9.0, 9.0]]}
    >>> batch = make_batch([0, 0], length=[2, 2], reward_terms={"correct": [0.0, 1.0]}, signals=seen)
    >>> TeacherConfidence()(batch)
    tensor([[0.7500, 0.2500],
            [0.5000, 0.5000]], dtype=torch.float64)
    """

    temperature: float = 1.0
    teacher: str = "hinted"

    @property
    def required_signals(self) -> frozenset[str]:
        """How sure the teacher is."""
        return frozenset({f"entropy@{self.teacher}"})

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """Who is right."""
        return REQUIRED_TERMS

    def __call__(self, batch: Batch) -> PerAction:
        mended, one = batch.mask & self_distill_mask(batch), torch.ones_like(batch.old_logp)
        w = (-batch.signals[f"entropy@{self.teacher}"].to(one) / self.temperature).exp()
        w, rest = w.where(mended, 0.0), one.where(batch.mask & ~mended, 0.0)
        return w / w.sum().clamp(min=1e-8) + rest / rest.sum().clamp(min=1)
