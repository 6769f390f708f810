"""REINFORCE++-Baseline: less group mean, by batch deviation. Hu et al., 2025, arXiv:2501.03262."""

from grupo.algo import divergences
from grupo.algo.advantages import Center, Whiten, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import KL, Clip
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="REINFORCE++: Stabilizing Critic-Free Policy Optimization with Global Advantage "
    "Normalization",
    use="Groups are small or nearly all right, so that their own deviation is a poor measure.",
    verl="adv_estimator='reinforce_plus_plus_baseline', use_kl_loss=True, kl_loss_type='k2' "
    "(a lone rollout keeps its reward)",
    checked=("golden", "laws", "reference", "run"),
)


def reinforce_pp_baseline(group: int = 8, kl: float = 0.01, clip: float = 0.2) -> Method:
    """A = whiten(r - mean(r)): mean of the group, deviation of all tokens of the batch.

    loss = mean over tokens of -min(R A, clip(R, 1 - `clip`, 1 + `clip`) A) + `kl` k2
    with k2 = (log pi - log ref)^2 / 2, whose gradient is that of KL(pi, ref).
    """
    # Group size and coefficient are our choice; 0 needs no reference.
    surrogate = Clip(clip, clip)
    return Method(
        sample=Independent(group),
        credit=chain(Center(), Whiten()),
        loss=surrogate + kl * KL(divergences.k2),
        weigh=token_mean,
    )
