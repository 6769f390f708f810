"""Self-distillation: incorrect rollouts learn from a teacher prompted with a correct sibling.

The teacher's prompt contains a correct rollout of the same group. A rollout is correct if its
reward term `correct` is above 0.5.
Source: SRPO, Li et al., arXiv:2604.02288.
"""

import torch
from jaxtyping import Bool
from torch import Tensor

from grupo.algo import ratios
from grupo.algo.aggregation import token_mean
from grupo.algo.losses.base import Loss
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import NonNegative, Positive
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
    """sg(min(r, cap)) JSD(pi, teacher) in `self_distill_mask`, else `policy_loss`.

    The divergence is exact, over the whole vocabulary; r is the token ratio. Shape (N, T).
    Source: SRPO, Li et al., arXiv:2604.02288.

    Args:
        policy_loss: loss of the other rollouts.
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
        divergence = pi[f"jsd@{self.teacher}"]
        return torch.where(self_distill_mask(batch), r * divergence, self.policy_loss(pi, batch))


@component
class TeacherConfidence:
    """The mean over all tokens, in which distilled ones weigh w / mean(w), (N, T).

    w = exp(-H / temperature), H the teacher's entropy; its mean is over the distilled tokens, those
    in `self_distill_mask`.
    Source: SRPO, Li et al., arXiv:2604.02288, sections 3.2 and 3.3.

    Args:
        temperature: in nats; a small one concentrates on tokens of a confident teacher.
        teacher: name of the teacher, whose `entropy@<name>` is measured.

    >>> from math import log
    >>> from grupo.testing.batches import make_batch
    >>> entropy = {"entropy@hinted": [[0.0, log(3.0)], [9.0, 9.0]]}
    >>> correct = {"correct": [0.0, 1.0]}
    >>> batch = make_batch([0, 0], length=[2, 2], reward_terms=correct, signals=entropy)
    >>> TeacherConfidence()(batch)
    tensor([[0.3750, 0.1250],
            [0.2500, 0.2500]], dtype=torch.float64)
    """

    temperature: Positive = 1.0
    teacher: str = "hinted"

    @property
    def requires(self) -> Requires:
        # entropy of the teacher, in nats
        return Requires(signals=(f"entropy@{self.teacher}",), reward_terms=("correct",))

    def __call__(self, batch: Batch) -> PerAction:
        distilled = batch.mask & self_distill_mask(batch)
        weight = token_mean(batch)
        entropy = batch.signals[f"entropy@{self.teacher}"].to(weight)
        confidence = (-entropy / self.temperature).exp().where(distilled, 0.0)
        mean = confidence.sum().clamp(min=1e-8) / distilled.sum().clamp(min=1)
        return weight * (confidence / mean).where(distilled, 1.0)
