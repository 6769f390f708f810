"""Self-distillation: incorrect rollouts learn from a teacher prompted with a correct sibling.

The teacher's prompt contains a correct rollout of the same group. A rollout is correct if its
reward term `correct` is above 0.5.
Source: SRPO, Li et al., arXiv:2604.02288.
"""

import torch
from jaxtyping import Bool
from torch import Tensor

from grupo.algo import ratios
from grupo.algo.losses.base import Loss
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, Positive
from grupo.core.requires import Requires


def self_distill_mask(batch: Batch) -> Bool[Tensor, "N 1"]:
    """True for incorrect rollouts whose group contains a correct one, (N, 1).

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0, 1], reward_terms={"correct": [1.0, 0.0, 0.0]})
    >>> self_distill_mask(batch).flatten().tolist()
    [False, True, False]
    """
    correct = batch.reward_terms["correct"]
    has_correct_sibling = group_ops.max(correct, batch.group) > 0.5
    return (has_correct_sibling & (correct <= 0.5))[batch.rollout, None]


@component
class SelfDistillOnFailure(Loss):
    """distill_coef sg(min(r, cap)) JSD(pi, teacher) in `self_distill_mask`, else `policy_loss`.

    The divergence is exact, over the whole vocabulary; r is the token ratio. Shape (N, T).
    Source: SRPO, Li et al., arXiv:2604.02288.

    Args:
        policy_loss: loss of the other rollouts.
        distill_coef: coefficient of the distillation loss.
        cap: largest importance ratio.
        teacher: name of the teacher, whose `jsd@<name>` is computed.

    >>> from grupo.algo.losses.policy_gradient import Reinforce
    >>> from grupo.testing.batches import make_batch, perturb_logp
    >>> correct = {"correct": [1.0, 0.0]}
    >>> batch = make_batch(group=[0, 0], advantage=[1.0, -1.0], reward_terms=correct)
    >>> pi = perturb_logp(batch, [[0.0], [9.0]])
    >>> pi["jsd@hinted"] = torch.full((2, 1), 0.25)
    >>> SelfDistillOnFailure(Reinforce())(pi, batch).tolist()
    [[1.0], [0.5]]
    """

    policy_loss: Loss
    distill_coef: NumberOrSchedule = 1.0
    cap: NonNegative = 2.0
    teacher: str = "hinted"

    @property
    def requires(self) -> Requires:
        return Requires(
            recomputed_signals=(f"jsd@{self.teacher}",),
            reward_terms=("correct",),
            surrogate_gradient=True,
        )

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        r = ratios.token(pi, batch).detach().clamp(max=self.cap)
        distill_loss = self.distill_coef * r * pi[f"jsd@{self.teacher}"]
        return torch.where(self_distill_mask(batch), distill_loss, self.policy_loss(pi, batch))


@component
class TeacherConfidence:
    """Aggregation: exp(-H / temperature) over distilled tokens, a token mean over the others.

    H is the teacher's entropy. The weights (N, T) of tokens in `self_distill_mask` sum to 1, and so
    do those of the other tokens.
    Source: SRPO, Li et al., arXiv:2604.02288.

    Args:
        temperature: in nats; a small one concentrates on tokens of a confident teacher.
        teacher: name of the teacher, whose `entropy@<name>` is measured.

    >>> from math import log
    >>> from grupo.testing.batches import make_batch
    >>> entropy = {"entropy@hinted": [[0.0, log(3.0)], [9.0, 9.0]]}
    >>> correct = {"correct": [0.0, 1.0]}
    >>> batch = make_batch([0, 0], length=[2, 2], reward_terms=correct, signals=entropy)
    >>> TeacherConfidence()(batch)
    tensor([[0.7500, 0.2500],
            [0.5000, 0.5000]], dtype=torch.float64)
    """

    temperature: Positive = 1.0
    teacher: str = "hinted"

    @property
    def requires(self) -> Requires:
        # entropy of the teacher, in nats
        return Requires(signals=(f"entropy@{self.teacher}",), reward_terms=("correct",))

    def __call__(self, batch: Batch) -> PerAction:
        distilled = batch.mask & self_distill_mask(batch)
        ones = torch.ones_like(batch.old_logp)
        entropy = batch.signals[f"entropy@{self.teacher}"].to(ones)
        confidence = (-entropy / self.temperature).exp().where(distilled, 0.0)
        others = ones.where(batch.mask & ~distilled, 0.0)
        return confidence / confidence.sum().clamp(min=1e-8) + others / others.sum().clamp(min=1)
