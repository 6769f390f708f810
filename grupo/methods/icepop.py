"""IcePop: drop tokens on which engine and trainer disagree. Ling Team, 2025, arXiv:2510.18855."""

from grupo.algo.losses import Clip, CorrectedLoss, ImportanceWeight, IntervalMask
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Every Step Evolves: Scaling Reinforcement Learning for Trillion-Scale Thinking Model",
    use="A mixture of experts is trained: some tokens have quite other odds in the engine.",
    trl="vllm_importance_sampling_mode='token_mask', vllm_importance_sampling_clip_min=0.5, "
    "vllm_importance_sampling_clip_max=5.0",
    verl="rollout_is='token', rollout_is_threshold='0.5_5.0'",
    checked=("golden", "laws", "reference", "run"),
)


def icepop(
    group_size: int = 8, min_ratio: float = 0.5, max_ratio: float = 5.0, clip_eps: float = 0.2
) -> Method:
    """loss = M(pi_old / pi_sampler) x PPO's clipped surrogate, M(k) = k in [`min_ratio`, `max_ratio`], else 0.

    The mean is over tokens of an answer, then over answers; dropped tokens still count in it.
    """
    # [0.5, 5] are alpha and beta of the authors' post, as recipes for verl take them over. The
    # paper's objective also has a KL to the reference, not masked: .replace(loss=... + kl * KL()).
    loss = CorrectedLoss(
        Clip(clip_eps, clip_eps), ImportanceWeight(IntervalMask(min_ratio, max_ratio))
    )
    return Method(sampler=GroupSampler(group_size), loss=loss)
