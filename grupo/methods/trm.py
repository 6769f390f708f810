"""TRM: mask answers with a token out of the trust region. Li et al., 2025, arXiv:2512.23075."""

from grupo.algo.divergences import k3
from grupo.algo.losses import Clip, CorrectedLoss, RejectionMask
from grupo.algo.token_level import row_max, row_mean
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Trust Region Masking for Long-Horizon LLM Reinforcement Learning",
    use="Answers are long, and the engine's or a stale policy's rollouts make training diverge.",
    trl="",
    verl="rollout_rs='seq_max_k3,seq_mean_k3', rollout_rs_threshold='0.05,0.002' (it masks "
    "what it rejects: a token mean is without)",
    checked=("golden", "laws", "reference", "run"),
)


def trm(
    group_size: int = 8,
    max_token_kl: float = 0.05,
    max_mean_kl: float = 0.002,
    clip_eps: float = 0.2,
) -> Method:
    """loss = [max_t k3 <= `largest_mismatch`] [mean_t k3 <= `max_mean_kl`] x PPO's clipped surrogate.

    k3 = e^d - d - 1 with d = log pi_old - log pi_sampler estimates each token's KL(sampler, old):
    the answer is learned from only if its worst token and its mean are within bounds.
    """
    # The theorem bounds the exact KL of every state, old to current; what an engine tells is the
    # log-probability of what was drawn, so this is the estimate that the authors' code uses, on
    # what they call the rollout policy. The thresholds are our choice: the paper sets none.
    # Other criteria: Accepted(k1 | k2 | k3, by_action | by_sum | by_mean | by_max, low, high).
    loss = CorrectedLoss(Clip(clip_eps, clip_eps), RejectionMask(k3, row_max, max_kl=max_token_kl))
    return Method(
        sampler=GroupSampler(group_size),
        loss=CorrectedLoss(loss, RejectionMask(k3, row_mean, max_kl=max_mean_kl)),
    )
