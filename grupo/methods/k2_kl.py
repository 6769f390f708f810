"""k2 as loss: the KL estimator with the correct gradient. Liu et al., 2025, arXiv:2510.01555."""

from grupo.algo.advantages import Center
from grupo.algo.aggregation import token_mean
from grupo.algo.divergences import k2
from grupo.algo.losses import KL, Reinforce
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def k2_kl(group_size: PositiveInt = 8, kl_coef: NonNegative = 0.04) -> Method:
    """loss = mean over tokens of -A log pi + kl_coef (log pi - log ref)^2 / 2, A = r - mean(r).

    On policy this has the gradient of kl_coef (log pi - log ref) subtracted from each token's
    reward: k2 as a loss is k1 in the reward. k3 as a loss is its biased first-order approximation.

    Args:
        group_size: rollouts per task (our choice).
        kl_coef: weight of the KL divergence from the reference policy (GRPO's value).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=Center(),
        loss=Reinforce() + kl_coef * KL(k2),
        aggregation=token_mean,
    )


PAPER = Paper(
    title="Rethinking KL Regularization in RLHF: From Value Estimation to Gradient Optimization",
    use="A KL to a reference is wanted whose on-policy gradient is that of the KL divergence.",
    tags=("kl",),
    verl="use_kl_loss=True, kl_loss_type='mse' (or 'k2')",
    checked=("golden", "properties", "reference", "run"),
    source=Source("abstract", "abstract; the factor off policy is the file's account of the paper"),
    plan="not stated in any source that was opened; one update per step",
    missing=(
        (
            "The ratio, held constant, by which the paper multiplies off policy: CorrectedKL() "
            "has that gradient."
        ),
    ),
    deviations=(
        "The baseline, the mean over tokens, group_size 8 and kl_coef 0.04 are our choice: the "
        "abstract names none of them.",
    ),
    audit=(
        "k2 as a loss against k1 in the reward and k3 as a loss compared with a summary that cites "
        "the paper; the gradient of k2 is tested against that of the KL divergence"
    ),
)
