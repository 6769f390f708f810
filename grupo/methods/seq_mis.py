"""Seq-MIS: leave out answers whose product of ratios is too high. Liu et al., 2025, blog post."""

from grupo.algo.losses import Clip, CorrectedLoss, ImportanceWeight, IntervalMask
from grupo.algo.token_level import row_sum
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="When Speed Kills Stability: Demystifying RL Collapse from the Training-Inference "
    "Mismatch",
    use="Training collapses under truncated weights: what the engine got wrong is dropped.",
    trl="vllm_importance_sampling_clip_max=2.0 (its default mode, 'sequence_mask', but cap, 3)",
    verl="rollout_is='sequence', rollout_is_threshold='1e-9_2.0' (its "
    "rollout_rs='seq_sum_k1' bounds the inverse of the product, on both sides, and masks rows)",
    checked=("golden", "laws", "reference", "run"),
)


def seq_mis(group_size: int = 8, cap: float = 2.0, clip_eps: float = 0.2) -> Method:
    """loss = w x PPO's clipped surrogate, w = prod_t pi_old / pi_sampler up to `cap`, 0 above.

    Rows above `cap` give no gradient and still count in the mean. GRPO's credit, clip `clip_eps`.
    """
    # 2 as in the peers; the formula is known to us from their code, not from the post itself.
    loss = CorrectedLoss(
        Clip(clip_eps, clip_eps), ImportanceWeight(IntervalMask(0.0, cap), row_sum)
    )
    return Method(sampler=GroupSampler(group_size), loss=loss)
