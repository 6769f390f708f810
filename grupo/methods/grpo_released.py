"""GRPO of verl: a mean over all tokens of the batch. Shao et al., 2024, arXiv:2402.03300."""

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def grpo_released(
    group_size: PositiveInt = 5, clip_eps: NonNegative = 0.2, kl_coef: NonNegative = 0.001
) -> Method:
    """A = (r - mean(r)) / (std(r) + 1e-6), std divided by G - 1, and a mean over all tokens.

    loss = 1 / sum_i L_i times the sum over all tokens of
      -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A) + kl_coef k3

    A step has 4 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task (verl's example: 5).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        kl_coef: weight of the KL divergence from the reference policy (verl's example: 0.001).
    """
    # The paper averages tokens within an answer first (eq. 3), as `grpo` does; verl, with which
    # most published GRPO results were obtained, averages over tokens, so long answers count more.
    return Method(
        sampler=GroupSampler(group_size),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
        aggregation=token_mean,
        updates=Updates(minibatches=4),
    )


PAPER = Paper(
    title="DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models",
    use="For comparison with results obtained with verl's GRPO.",
    tags=("aggregation", "kl"),
    trl="loss_type='dapo', which is its default, beta=0.001",
    verl="adv_estimator='grpo', use_kl_loss=True, kl_loss_coef=0.001, loss_agg_mode='token-mean'",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "third_party",
        "verl: compute_grpo_outcome_advantage and examples/grpo_trainer/run_qwen2-7b.sh",
    ),
    plan="run_qwen2-7b.sh: 1,024 prompts per step in minibatches of 256, 4 updates",
    missing=(
        "verl's bound of -R A at 3 |A| where A < 0 (dual clip).",
        "verl's clamp of k3 to +-10.",
        "A lone rollout keeps its reward in verl; here its advantage is 0.",
        "The entropy bonus of 0.001: verl's default until April 2025, which the script left on.",
    ),
    deviations=(
        "The mean is over the tokens of a minibatch; in older versions of verl, of a micro-batch.",
    ),
    audit=(
        "constants and plan compared with run_qwen2-7b.sh in a fork of verl; arithmetic "
        "compared with verl 0.9.1 in an earlier audit (848 cases over all methods)"
    ),
)
