"""DeepSeek-R1: GRPO on rules alone, hardly clipped. Guo et al., 2025, arXiv:2501.12948."""

from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.core.paper import Paper
from grupo.core.reference_update import ReferenceUpdate
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="DeepSeek-R1: Incentivizing Reasoning Capability in LLMs via Reinforcement Learning",
    use="A strong base model, rewards by rules, and thousands of steps far from where it began.",
    trl="loss_type='grpo', epsilon=10, beta=0.001, sync_ref_model=True, ref_model_mixup_alpha=1",
    verl="clip_ratio_low=clip_ratio_high=10 (clip_ratio alone has no effect), a huge clip_ratio_c, "
    "use_kl_loss=True, kl_loss_coef=0.001, 'seq-mean-token-mean'; the reference stays",
    checked=("golden", "laws", "run"),
)


def deepseek_r1(
    group_size: int = 16,
    clip_eps: float = 10.0,
    kl_coef: float = 0.001,
    ref_update_every: int = 400,
    minibatches: int = 16,
) -> Method:
    """GRPO whose reference is replaced by the policy `ref_update_every` steps, with r = accuracy + format.

    loss = mean over answers of -min(R A, clip(R, 1 - `clip_eps`, 1 + `clip_eps`) A) + `kl_coef` k3, A = (r -
    mean(r)) / std(r).
    """
    # Group, KL, `ref_update_every` and one pass in 16 minibatches are of R1-Zero, the clip of R1's first
    # stage: R is cut only where it exceeds 11. The formula is printed for whole answers; tokens are
    # averaged here, as in the paper that GRPO is from. A clip per answer would be clip=10 on
    # ratios.sequence.
    return Method(
        sampler=GroupSampler(group_size),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
        updates=Updates(minibatches=minibatches),
        reference=ReferenceUpdate(rate=1.0, every=ref_update_every),
    )
