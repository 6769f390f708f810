"""CGPO, CRPG: reward only where every judge accepts. Xu et al., 2024, arXiv:2409.20370."""

import torch
from torch import Tensor

from grupo.algo.advantages import chain
from grupo.algo.advantages.constraints import CalibratedReward, KLDiscounted
from grupo.algo.aggregation import rollout_mean
from grupo.algo.losses import Reinforce
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="The Perfect Blend: Redefining RLHF with Mixture of Judges",
    use="A reward model that is hacked, and rules that tell when.",
    checked=("golden", "laws", "run"),
    catalogue=("cgpo",),
)


@component
class CenterBatch:
    """x - its mean over the whole batch."""

    @property
    def needs_whole_batch(self) -> bool:
        """Yes: the mean is over all groups."""
        return True

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x - torch.where(batch.lengths > 0, x, 0.0).sum() / (batch.lengths > 0).sum()


def cgpo_crpg(group_size: int = 4, max_kl: float = 10.0) -> Method:
    """A = R - mean(R) over the batch, R = F sigmoid(r - r_ref) max(0, 1 - k / `max_kl`).

    loss = mean over answers of -A mean_t log pi; k = log pi_old(y) - log pi_ref(y). parts:
    "feasible", F, and "baseline", r_ref.
    """
    # Calibrated policy gradient, as TRL's draft of a CGPOTrainer has it. `max_kl` (KL_max, in nats
    # per answer) has no default there: 10 is our choice. One task with one reward model.
    credit = chain(CalibratedReward(), KLDiscounted(max_kl), CenterBatch())
    return Method(
        sampler=GroupSampler(group_size),
        advantage=credit,
        loss=Reinforce(),
        aggregation=rollout_mean,
    )
