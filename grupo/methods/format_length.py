"""Format-length: format and length replace correctness. Xin et al., 2025, arXiv:2505.19439."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.losses import KL, Clip
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def format_length(
    max_length: PositiveInt = 3072,
    group_size: PositiveInt = 8,
    peak_fraction: NonNegative = 0.5,
    kl_coef: NonNegative = 0.001,
) -> Method:
    """A = (r - mean(r)) / std(r), r from format and length alone; answers are never compared.

    Reward terms: "format" is 1 or 0.

    Args:
        max_length: generation limit, in tokens.
        group_size: rollouts per task.
        peak_fraction: length with the highest reward, as a fraction of max_length (paper: 0.5).
        kl_coef: weight of the KL divergence from the reference policy.
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(FormatLengthReward(max_length, peak_fraction), Center(), ScaleByStd()),
        loss=Clip() + kl_coef * KL(),
    )


@component
class FormatLengthReward:
    """r = f + l where the format f is correct, min(0, f + l) elsewhere (eq. 5), with x = L /
    max_length.

    l = 1 - (1 - x / p)^2 up to the peak p, and 1 - 2 ((x - p) / (1 - p))^2 beyond it (eq. 2).

    Args:
        max_length: length limit of an answer, in tokens.
        peak_fraction: length with the highest reward, as a fraction of max_length.
        reward_term: reward term that is 1 where the answer can be parsed, else 0.
    """

    max_length: PositiveInt
    peak_fraction: NumberOrSchedule = 0.5
    reward_term: str = "format"

    @property
    def requires(self) -> Requires:
        # the format, 1 or 0
        return Requires(reward_terms=(self.reward_term,))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        f = batch.reward_terms[self.reward_term]
        p = self.peak_fraction
        share = (batch.lengths / self.max_length).clamp(max=1)
        rising = 1 - (1 - share / p) ** 2
        falling = 1 - 2 * ((share - p) / (1 - p)) ** 2
        r = f + torch.where(share <= p, rising, falling)
        return torch.where(f > 0.5, r, r.clamp(max=0))


PAPER = Paper(
    title="Surrogate Signals from Format and Length: Reinforcement Learning for Solving"
    " Mathematical Problems without Ground Truth Answers",
    use="Mathematics without reference answers, from a base model that has yet to learn the "
    "format.",
    tags=("unsupervised", "length", "reward"),
    checked=("golden", "properties", "reference"),
    catalogue=("format-length-surrogate",),
    source=Source(
        "code",
        "eq. 2 and 5 of the paper; insightLLM/rl-without-gt, "
        "rl/verl/lib/src/rewards/math_reward.py and run_grpo_math_7b.sh",
    ),
    plan="run_grpo_math_7b.sh: train batch 128, minibatch 128 prompts: one update per step",
    missing=("Sampling at temperature 0.6, which is a choice of the recipe.",),
    deviations=(
        (
            "The released reward averages two checks for f, thinking block and answer, and gives "
            "min(0, l) where the answer fails; here eq. 5 is followed."
        ),
        (
            "Clip 0.2 is verl's default; its entropy bonus of 0.001, which the script leaves on, "
            "is left out."
        ),
        (
            "The mean is over answers, as GRPO's: the release's is over tokens (masked_mean in "
            "compute_policy_loss)."
        ),
        "The fork does not clamp the log-ratio, nor does the method.",
    ),
    audit=(
        "length reward, KL, group, limit and batch sizes compared with length_reward_func_v3 and "
        "the script"
    ),
)
