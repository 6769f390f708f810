"""ProRL: KL to a reference that is reset, for long runs. Liu et al., 2025, arXiv:2505.24864."""

from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.units import RolloutSteps
from grupo.method import Method
from grupo.rollouts.curricula import DynamicSampling, ShuffledTasks
from grupo.rollouts.samplers import GroupSampler


def prorl(
    group_size: PositiveInt = 16,
    clip_low: NonNegative = 0.2,
    clip_high: NonNegative = 0.4,
    kl_coef: NonNegative = 0.0001,
    ref_update_every: RolloutSteps = 400,
    max_resample_rounds: PositiveInt = 10,
) -> Method:
    """DAPO's clip and dynamic sampling, plus kl_coef k3 to a reference that is reset to the policy.

    loss = mean over all tokens of -min(R A, clip(R, 1 - clip_low, 1 + clip_high) A) + kl_coef k3.

    A step makes 4 updates, one on each of 4 minibatches.

    Args:
        group_size: rollouts per task.
        clip_low: ratios are clipped below at 1 - clip_low.
        clip_high: ratios are clipped above at 1 + clip_high.
        kl_coef: weight of the KL divergence from the reference policy (OpenRLHF's script).
        ref_update_every: rollout steps between resets of the reference (our choice).
        max_resample_rounds: most rounds of dynamic sampling in a step (DAPO's value).
    """
    return Method(
        curriculum=DynamicSampling(ShuffledTasks(), max_resample_rounds),
        sampler=GroupSampler(group_size),
        filter=keep_nonzero_std,
        loss=Clip(clip_low, clip_high) + kl_coef * KL(),
        aggregation=token_mean,
        updates=Updates(minibatches=4),
        reference=ReferenceUpdate(rate=1.0, every=ref_update_every),
    )


PAPER = Paper(
    title="ProRL: Prolonged Reinforcement Learning Expands Reasoning Boundaries in Large Language"
    " Models",
    use="Thousands of steps on many kinds of tasks, where runs without a KL term diverge.",
    tags=("kl", "filtering", "clipping"),
    checked=("golden", "properties", "run"),
    source=Source(
        "paper",
        (
            "sections 2, 3.2 and 3.3; OpenRLHF's train_prorlv2_math_hybrid_engine.sh for the KL "
            "weight"
        ),
    ),
    plan="section 3.2: batch 256, minibatch 64: 4 updates per step",
    missing=(
        "The reset of the optimizer together with the reference.",
        "The temperature of 1.2 at which the paper samples.",
        "The limit of an answer grows from 8,000 to 16,000 tokens in the last 200 steps.",
        "Groups of 32 in two of the paper's eight runs (a public note on its appendix).",
    ),
    deviations=(
        (
            "The reference is reset every 400 steps; the paper resets it when validation stagnates "
            "or degrades."
        ),
        "Of OpenRLHF's script only the KL weight is taken. It has k2, advantages whitened over"
        " the batch, a clip of 0.2 and 0.27, the IcePop mask, reward 0 for truncated answers, and"
        " 512 prompts in 8 updates.",
        "The token mean is DAPO's and the estimator k3 our choice: sections 2 and 3 state neither,"
        " and print the ratio of a whole answer, not of a token.",
        "Groups whose rewards differ are kept; the paper drops accuracies of 0 and 1.",
    ),
    audit="clip, group, plan, filter, KL term and resets compared with the text of the paper",
)
