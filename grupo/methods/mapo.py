"""MAPO: certainty of a group mixes two advantage scales. Huang et al., 2025, arXiv:2509.18849."""

from math import inf

from torch import Tensor

from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def mapo(
    group_size: PositiveInt = 12,
    full_score: NonNegative = 1.0,
    clip_eps: NonNegative = 0.2,
    kl_coef: NonNegative = 0.01,
) -> Method:
    """A = (1 - l) (r - mean) / std + l (r - mean) / mean, l = 1 - 4 p (1 - p) (eq. 2, 4 to 6).

    loss = mean over answers of mean over tokens of -min(R A, clip(R, 1 -+ clip_eps) A) + kl_coef
    k3. Rewards must not be negative.

    A step has 4 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task (authors' script: 12).
        full_score: reward of a completely correct answer.
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (our choice; the authors' code
            has 0.2 and 0.3).
        kl_coef: weight of the KL divergence from the reference policy (authors' code: 0.01).
    """
    loss = Clip(clip_eps, clip_eps) + kl_coef * KL()
    return Method(
        sampler=GroupSampler(group_size),
        advantage=MixedScaleAdvantage(full_score),
        loss=loss,
        updates=Updates(minibatches=4),
    )


@component
class MixedScaleAdvantage:
    """(1 - l) (x - m) / s + l (x - m) / m, with l = 1 - 4 p (1 - p), p the fraction of full scores.

    m and s are mean and standard deviation (by n) of the group; a full score is full_score or more.

    Args:
        full_score: reward of a completely correct answer.
        eps: added to the denominator.

    >>> import torch
    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0, 0, 0])
    >>> x = torch.tensor([1.0, 0.0, 0.0, 0.0])
    >>> MixedScaleAdvantage(eps=0.0)(x, batch)  # l = 1/4: 3/4 1.732 + 1/4 3
    tensor([ 2.0490, -0.6830, -0.6830, -0.6830])
    """

    full_score: NumberOrSchedule = 1.0
    eps: NumberOrSchedule = 1e-6

    requires = Requires(reward_range=(0.0, inf))  # a negative mean would change the sign

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        m = group_ops.mean(x, batch.group)
        s = group_ops.population_std(x, batch.group)
        p = group_ops.mean((x >= self.full_score).to(x), batch.group)
        certainty = 1 - 4 * p * (1 - p)
        return (x - m) * ((1 - certainty) / (s + self.eps) + certainty / (m + self.eps))


PAPER = Paper(
    title="MAPO: Mixed Advantage Policy Optimization",
    use="Rewards are graded, and tiny differences in nearly solved groups should stay tiny.",
    tags=("advantage",),
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "WenkeHuang/MAPO: GRPOMIXPRO in code/verl/trainer/ray_trainer.py, "
        "examples/config.yaml, examples/qwen2_5_vl_7b_geo3k_grpo_our.sh; eq. 2 and 4 to 6 "
        "of the paper",
    ),
    plan=(
        "examples/config.yaml: 512 prompts per step in minibatches of 128, 4 updates; all run "
        "scripts of the release have the estimator grpo, none has grpomixpro"
    ),
    missing=(
        "The framework's upper clip of 0.3, dual clip of 3 and clamp of k3 to +-10.",
        "The top-p of 0.99 with which the configuration samples.",
        "The reward of the release, 0.9 accuracy + 0.1 format, of which p counts scores of 1.",
    ),
    deviations=(
        (
            "The standard deviation is by n: the paper's -1.73 for 0.9 of 1 is by n, the code's"
            " is by n - 1."
        ),
        (
            "The mean is over answers, as the paper prints GRPO: the framework's default is "
            "over the tokens of 4 rollouts at a time."
        ),
        (
            "l is that of a rollout's own group. The code reorders rows before the advantages, to "
            "balance lengths (_balance_batch), then repeats the weights in the order of the "
            "groups' first rows, so that rows can get the weight of another group."
        ),
    ),
    audit=(
        "both scales, their weights, group size, KL weight and plan compared with the code "
        "and the configuration"
    ),
    shown=("docs/claims.md#difficulty",),
)
