"""TRM: masks answers that leave the trust region. Li et al., 2025, arXiv:2512.23075."""

from grupo.algo.divergences import k3
from grupo.algo.losses import Clip, CorrectedLoss, RejectionMask
from grupo.algo.token_level import row_max, row_mean
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def trm(
    group_size: PositiveInt = 8,
    max_token_kl: NonNegative = 0.05,
    max_mean_kl: NonNegative = 0.002,
    clip_eps: NonNegative = 0.2,
) -> Method:
    """loss = [max_t k3 <= max_token_kl] [mean_t k3 <= max_mean_kl] x PPO's clipped surrogate.

    k3 = e^d - d - 1 with d = log pi_old - log pi_sampler estimates each token's KL(sampler, old).
    An answer is trained on only if its worst token and its mean are within bounds.

    Args:
        group_size: rollouts per task (our choice).
        max_token_kl: largest k3 of a token, in nats (our choice).
        max_mean_kl: largest mean k3 of an answer, in nats (our choice).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
    """
    # Other criteria: RejectionMask(k1 | k2 | k3, level, min_kl, max_kl).
    token_mask = RejectionMask(k3, row_max, max_kl=max_token_kl)
    loss = CorrectedLoss(Clip(clip_eps, clip_eps), token_mask)
    return Method(
        sampler=GroupSampler(group_size),
        loss=CorrectedLoss(loss, RejectionMask(k3, row_mean, max_kl=max_mean_kl)),
    )


PAPER = Paper(
    title="Trust Region Masking for Long-Horizon LLM Reinforcement Learning",
    use="Answers are long, and rollouts of the engine or a stale policy make training diverge.",
    tags=("off-policy", "filtering", "clipping"),
    trl="",
    verl="rollout_rs='seq_max_k3,seq_mean_k3', rollout_rs_threshold='0.05,0.002' (it masks "
    "what it rejects: a token mean is without)",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "verl's rollout correction (seq_max_k3, seq_mean_k3), which one of the authors wrote",
    ),
    plan="not stated in any source that was opened; one update per step",
    deviations=(
        (
            "The theorem bounds the exact KL of every state, old to current; engines return the "
            "log-probability of the sampled token, so this is the estimate of that code, on what "
            "it calls the rollout policy."
        ),
        "The thresholds are our choice; verl's preset of seq_mean_k3 has 0.01.",
        (
            "Rejected answers count in the mean over answers, so that the loss is divided by their "
            "number, too; that code takes them out of the mask."
        ),
    ),
    audit="arithmetic compared with TRL 1.16 and verl 0.9.1 (848 cases)",
)
