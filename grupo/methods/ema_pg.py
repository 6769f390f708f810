"""EMA-PG: the reference is a moving average of the policy. Zhang and Ba, 2026, arXiv:2602.04417."""

from grupo.algo.losses import Clip, ReverseKL
from grupo.algo.minibatches import Updates
from grupo.core.numbers import Fraction, NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.units import RolloutSteps
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def ema_pg(
    group_size: PositiveInt = 8,
    kl_coef: NonNegative = 1e-3,
    ref_update_rate: Fraction = 0.05,
    ref_update_every: RolloutSteps = 10,
    clip_high: NonNegative = 0.28,
) -> Method:
    """GRPO with an exact KL divergence from a reference that follows the policy slowly.

    loss = mean over answers of mean over tokens of
      -min(R A, clip(R, 0.8, 1 + clip_high) A) + kl_coef KL(pi, ref),
    with the KL summed over the whole vocabulary, and ref <- (1 - ref_update_rate) ref +
    ref_update_rate pi after every ref_update_every steps.

    A step makes 2 updates, one on each of 2 minibatches.

    Args:
        group_size: rollouts per task (authors' code: 8).
        kl_coef: weight of the KL divergence from the reference policy (authors' code: 0.001).
        ref_update_rate: weight of the policy in an update of the reference (authors' code: 0.05).
        ref_update_every: rollout steps between updates of the reference (authors' code: 10).
        clip_high: ratios are clipped above at 1 + clip_high (authors' code: 0.28).
    """
    return Method(
        sampler=GroupSampler(group_size),
        loss=Clip(0.2, clip_high) + kl_coef * ReverseKL(),
        reference=ReferenceUpdate(ref_update_rate, ref_update_every),
        updates=Updates(minibatches=2),
    )


PAPER = Paper(
    title="EMA Policy Gradient: Taming Reinforcement Learning for LLMs with EMA Anchor and Top-k "
    "KL",
    use="A run is long, and its KL divergence should be from a reference that follows the policy.",
    tags=("kl",),
    trl="sync_ref_model=True, ref_model_mixup_alpha, ref_model_sync_steps, with beta > 0: k3",
    checked=("golden", "properties", "run"),
    source=Source(
        "code",
        "LunjunZhang/ema-pg, math/examples/deepscaler/train_deepscaler_8k_ema_pg.sh, "
        "math/rllm/trainer/verl/agent_ppo_trainer.py and, for the KL, "
        "search/scripts/nq_hotpotqa/v0.2/train_grpo_3b_base_ema_pg.sh",
    ),
    plan="train_deepscaler_8k_ema_pg.sh: train batch 128, minibatch 64 prompts: 2 updates per step",
    missing=(
        "The script drops truncated answers after the advantages.",
        "The later stages of 16,384 and 24,576 tokens, in which truncated answers count.",
        "The dual clip of 3, which is the default of the release's configuration.",
        "The importance weight of the KL term (use_kl_iw of the search script).",
    ),
    deviations=(
        (
            "The paper's KL is exact on the k likeliest tokens with a sampled tail, unbiased for "
            "every k; here k is the vocabulary. The search script has k = 32, the DeepScaleR "
            "scripts have k3."
        ),
        "The rate, the mean over answers and the group of 8 are those of mathematics; the search "
        "script has a rate of 0.1 and groups of 5.",
    ),
    audit=(
        "clip, KL weight, rate and period of the reference (in rollout steps), aggregation and "
        "batch sizes compared with the DeepScaleR script and the trainer"
    ),
)
