"""DeepSeek-R1: GRPO on rule-based rewards, hardly clipped. Guo et al., 2025, arXiv:2501.12948."""

from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.units import RolloutSteps
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def deepseek_r1(
    group_size: PositiveInt = 16,
    clip_eps: NonNegative = 10.0,
    kl_coef: NonNegative = 0.001,
    ref_update_every: RolloutSteps = 25,
    minibatches: PositiveInt = 16,
) -> Method:
    """GRPO whose reference is periodically replaced by the policy, with r = accuracy + format.

    loss = mean over answers of -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A) + kl_coef k3,
    A = (r - mean(r)) / std(r).

    Args:
        group_size: rollouts per task (R1-Zero: 16).
        clip_eps: R is clipped to [1 - clip_eps, 1 + clip_eps] (R1's first stage: 10).
        kl_coef: weight of the KL divergence from the reference policy (R1-Zero: 0.001).
        ref_update_every: rollout steps between updates of the reference (R1-Zero: 400 optimizer
            updates, which are 25 rollout steps of 16).
        minibatches: optimizer updates per rollout step (R1-Zero: 16).
    """
    return Method(
        sampler=GroupSampler(group_size),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
        updates=Updates(minibatches=minibatches),
        reference=ReferenceUpdate(rate=1.0, every=ref_update_every),
    )


PAPER = Paper(
    title="DeepSeek-R1: Incentivizing Reasoning Capability in LLMs via Reinforcement Learning",
    use="A strong base model, rule-based rewards, and thousands of steps of training.",
    tags=("kl", "clipping"),
    trl="loss_type='grpo', epsilon=10, beta=0.001, sync_ref_model=True, ref_model_mixup_alpha=1",
    verl="clip_ratio_low=clip_ratio_high=10 (clip_ratio alone has no effect), a huge clip_ratio_c, "
    "use_kl_loss=True, kl_loss_coef=0.001, 'seq-mean-token-mean'; the reference stays",
    checked=("golden", "properties", "run"),
    source=Source("paper", "sections 2 and B.4 (R1-Zero) and B.3.2 (R1's first stage)"),
    plan="R1-Zero: rollouts of 8,192 answers, minibatches of 512: 16 updates per step",
    missing=(
        "The cold start, rejection sampling and later stages of R1.",
        "The reward for the consistency of the language, of R1's first stage.",
        "The length limit of R1-Zero, which doubles to 65,536 tokens after 8,200 updates.",
    ),
    deviations=(
        "The formula is printed for whole answers; tokens are averaged here, as in GRPO's paper. "
        "A clip per answer would be Clip(10, 10, ratios.sequence).",
        "The standard deviation is by n - 1: the paper does not define it.",
    ),
    audit="constants and the unit of the reference's interval compared with the paper's account of"
    " R1-Zero: 400 optimizer steps of 512 answers are 25 rollout steps of 8,192",
)
