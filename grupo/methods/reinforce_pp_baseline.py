"""REINFORCE++-Baseline: group mean, batch std. Hu et al., 2025, arXiv:2501.03262."""

from grupo.algo import divergences
from grupo.algo.advantages import Center, Whiten, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import KL, Clip
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def reinforce_pp_baseline(
    group_size: PositiveInt = 8, kl_coef: NonNegative = 0.01, clip_eps: NonNegative = 0.2
) -> Method:
    """A = whiten(r - mean(r)): mean of the group, deviation over all tokens of the batch.

    loss = mean over tokens of -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A) + kl_coef k2 with k2
    = (log pi - log ref)^2 / 2, whose gradient is that of KL(pi, ref).

    Args:
        group_size: rollouts per task (authors' script: 8).
        kl_coef: weight of the KL divergence (our choice); 0 needs no reference.
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    surrogate = Clip(clip_eps, clip_eps)
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(), Whiten()),
        loss=surrogate + kl_coef * KL(divergences.k2),
        aggregation=token_mean,
    )


PAPER = Paper(
    title="REINFORCE++: Stabilizing Critic-Free Policy Optimization with Global Advantage "
    "Normalization",
    use="Groups are small or nearly all correct, so that their own deviation is a poor estimate.",
    tags=("advantage", "kl"),
    verl="adv_estimator='reinforce_plus_plus_baseline', use_kl_loss=True, kl_loss_type='k2' "
    "(a lone rollout keeps its reward)",
    checked=("golden", "properties", "reference", "run"),
    source=Source("code", "OpenRLHF, examples/scripts/train_reinforce_baseline_hybrid_engine.sh"),
    plan="the script: 128 prompts of 8 rollouts, train batch 1024: one update per step",
    missing=(
        "The filter of groups with equal rewards and the IcePop weights of the script.",
        "The clamp of r - mean(r) to [-10, 10] (reward.clip_range, on by default).",
        "OpenRLHF's clamp of k2 to +-10.",
    ),
    deviations=(
        "The variance of whitening divides by n - 1, OpenRLHF's by n, the number of tokens.",
        (
            "The weight of the KL is 0.01, as in reinforce_pp; the script has 1e-5, an older one "
            "1e-4."
        ),
    ),
    audit=(
        "arithmetic compared with TRL 1.16 and verl 0.9.1 (848 cases); group size, KL estimator "
        "and batch sizes compared with the script"
    ),
    shown=("docs/claims.md#noisy",),
)
