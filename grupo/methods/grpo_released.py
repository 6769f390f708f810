"""GRPO as released: a mean over all tokens of the batch. Shao et al., 2024, arXiv:2402.03300."""

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import KL, Clip
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models",
    use="For comparison with results obtained with verl's GRPO.",
    tags=("aggregation", "kl"),
    trl="loss_type='dapo', which is its default, beta=0.001",
    verl="adv_estimator='grpo', use_kl_loss=True, kl_loss_coef=0.001, loss_agg_mode='token-mean'",
    checked=("golden", "properties", "reference", "run"),
)


def grpo_released(
    group_size: PositiveInt = 5, clip_eps: NonNegative = 0.2, kl_coef: NonNegative = 0.001
) -> Method:
    """A = (r - mean(r)) / (std(r) + 1e-6), std divided by G - 1, and a mean over all tokens.

    loss = 1 / sum_i L_i times the sum over all tokens of
      -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A) + kl_coef k3

    Args:
        group_size: rollouts per task (verl's example: 5).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        kl_coef: weight of the KL divergence from the reference policy (verl's example: 0.001).
    """
    # The paper averages tokens within an answer first (eq. 3), as `grpo` does; verl, with which
    # most published GRPO results were obtained, averages over tokens, so long answers count more.
    # Its example uses 'low_var_kl', k3 clamped to +-10 (not here). verl also bounds -R A at 3 |A|
    # where A < 0 and lets a lone rollout keep its reward (not here).
    return Method(
        sampler=GroupSampler(group_size),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
        aggregation=token_mean,
    )
