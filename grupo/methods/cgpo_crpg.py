"""CGPO, CRPG: rewards count only if all judges accept. Xu et al., 2024, arXiv:2409.20370."""

import torch
from torch import Tensor

from grupo.algo.advantages import chain
from grupo.algo.advantages.constraints import CalibratedReward, KLDiscounted
from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Reinforce
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def cgpo_crpg(group_size: PositiveInt = 4, max_kl: Positive = 10.0) -> Method:
    """A = R - mean(R) over the batch, R = F sigmoid(r - r_ref) max(0, 1 - k / max_kl).

    loss = mean over answers of -A log pi(y); k = log pi_old(y) - log pi_ref(y). Reward terms:
    "feasible", F, and "baseline", r_ref.

    Args:
        group_size: rollouts per task (TRL's draft: 4).
        max_kl: k at which the reward is 0, in nats per answer (KL_max; our choice).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(CalibratedReward(), KLDiscounted(max_kl), CenterBatch()),
        loss=Reinforce(),
        aggregation=token_sum,
    )


@component
class CenterBatch:
    """x minus its mean over the rollouts of the batch that have actions."""

    # the mean is over all groups
    requires = Requires(whole_batch=True)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        has_actions = batch.lengths > 0
        return x - torch.where(has_actions, x, 0.0).sum() / has_actions.sum().clamp(min=1)


PAPER = Paper(
    title="The Perfect Blend: Redefining RLHF with Mixture of Judges",
    use="The reward model can be hacked, and rules or judges detect it.",
    tags=("reward", "kl"),
    checked=("golden", "properties", "run"),
    catalogue=("cgpo",),
    source=Source(
        "third_party",
        "eq. 12, as reviews quote it; TRL's draft of a CGPOTrainer (crpg_optimization)",
    ),
    plan="TRL's draft: one update per step",
    missing=(
        "Several tasks, each with judges and a reward model of its own.",
        "The temperature of 0.9 of the draft, and its optional penalty for an answer without end.",
    ),
    deviations=(
        "max_kl is our choice: the draft has no default.",
        "The mean is over answers; the draft divides the sum by the number of prompts.",
    ),
    audit="sums and group size compared with TRL's draft, which sums log-probabilities",
)
