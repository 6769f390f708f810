"""k2 as loss: the KL whose gradient is right. Liu et al., 2025, arXiv:2510.01555."""

from grupo.algo.advantages import Center
from grupo.algo.aggregation import token_mean
from grupo.algo.divergences import k2
from grupo.algo.losses import KL, Reinforce
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Rethinking KL Regularization in RLHF: From Value Estimation to Gradient Optimization",
    use="A KL to a reference is wanted, and on policy its gradient is to be that of the KL.",
    verl="use_kl_loss=True, kl_loss_type='mse' (or 'k2')",
    checked=("golden", "laws", "reference", "run"),
)


def k2_kl(group_size: int = 8, kl_coef: float = 0.04) -> Method:
    """loss = mean over tokens of -A log pi + `kl_coef` (log pi - log ref)^2 / 2, A = r - mean(r).

    On policy it has the gradient of `kl_coef` (log pi - log ref) taken from each token's reward: k2 as a
    loss is k1 in the reward. k3 as a loss is its first-order approximation, biased.
    """
    # Off policy the paper multiplies by the ratio, held constant: CorrectedKL() has that gradient.
    # The coefficient was not seen: GRPO's.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=Center(),
        loss=Reinforce() + kl_coef * KL(k2),
        aggregation=token_mean,
    )
