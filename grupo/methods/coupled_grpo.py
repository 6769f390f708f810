"""Coupled-GRPO: likelihoods under two complementary masks. Gong et al., 2025, arXiv:2506.20639."""

from grupo.algo.advantages import Center
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.numbers import Fraction, NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.units import RolloutSteps
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def coupled_grpo(
    group_size: PositiveInt = 10,
    clip_eps: NonNegative = 0.5,
    kl_coef: NonNegative = 0.01,
    ref_update_every: RolloutSteps = 32,
    ref_update_rate: Fraction = 0.6,
    epochs: PositiveInt = 2,
) -> Method:
    """A_i = r_i - mean of the other r_j, not scaled.

    loss = mean over all tokens of -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A) + kl_coef k3
    with R = e^(l - l_old); every ref_update_every steps the reference moves to the policy by
    ref_update_rate.

    It requires a policy with l = (l_0 + w l') / 2, by `CoupledEstimator`, the default of
    `MaskedDiffusion`: an answer unmasked in any order has no likelihood in closed form, and under
    one mask alone the unmasked tokens would have no gradient. Old, reference and current l use the
    same masks.

    A step makes 2 updates: 2 passes over its batch.

    Args:
        group_size: rollouts per task (authors: 10).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (authors: 0.5).
        kl_coef: weight of the KL divergence from the reference policy (authors: 0.01).
        ref_update_every: rollout steps between updates of the reference (authors: 64 optimizer
            steps, two of which make a rollout step).
        ref_update_rate: weight of the policy in an update of the reference (TRL's default, which
            the authors do not change: 0.6).
        epochs: passes over the batch per step (authors: 2).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=Center(group_ops.leave_one_out_mean),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
        aggregation=token_mean,
        updates=Updates(epochs=epochs),
        reference=ReferenceUpdate(ref_update_rate, ref_update_every),
    )


PAPER = Paper(
    title="DiffuCoder: Understanding and Improving Masked Diffusion Models for Code Generation",
    use="A masked diffusion model unmasks in any order, and can afford three forward passes.",
    tags=("diffusion", "advantage"),
    checked=("golden", "properties", "run"),
    catalogue=("coupled-grpo",),
    source=Source(
        "code",
        "apple/ml-diffucoder, recipes/config_coupled_code.yaml and src/open_r1/coupled_grpo.py",
    ),
    plan="config_coupled_code.yaml: num_iterations 2: 2 updates per step on the same rollouts",
    missing=(
        "The reward of the configuration: 2 x code + 0.5 x format.",
        "The top-p of 0.95 and the order by entropy with which the release unmasks.",
    ),
    deviations=(
        (
            "A mask is drawn for a step and each answer has its own masking ratio. The release "
            "draws two masks, each with one ratio; since its counter moves before the loss reads "
            "it, either half of the batch keeps one of them in both passes."
        ),
        "The mean is over the tokens of the batch, in the release of 5 answers at a time.",
        "Positions after the end token are always masked. In the release they are masked or shown "
        "like those of the answer, so that l' may see where the answer ends.",
        "The loss runs to the end of the block, in the release to the end token.",
    ),
    audit=(
        "loss, advantages and constants compared with coupled_grpo.py and the configuration, the "
        "reference with TRL's SyncRefModelCallback and its default of ref_model_mixup_alpha"
    ),
)
