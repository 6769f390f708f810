"""EM-RL-token: negative token entropy is the reward. Agarwal et al., 2025, arXiv:2505.15134."""

from grupo.algo.advantages import Center, chain
from grupo.algo.advantages.intrinsic import SumSignal
from grupo.algo.aggregation import token_sum
from grupo.algo.losses import KL, Reinforce
from grupo.core import group_ops
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def em_rl_token(group_size: PositiveInt = 4, kl_coef: NonNegative = 0.001) -> Method:
    """A_i = r_i - mean of the others, r = -sum_t H(pi(.|s_t)) (eq. 4).

    loss = mean over answers of sum over tokens of -A log pi + kl_coef k3 (table 1, section 3.3).

    Args:
        group_size: rollouts per task (paper: 4).
        kl_coef: weight of the KL divergence from the reference policy (paper: 0.001).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(SumSignal("entropy", -1.0), Center(group_ops.leave_one_out_mean)),
        loss=Reinforce() + kl_coef * KL(),
        aggregation=token_sum,
    )


PAPER = Paper(
    title="The Unreasonable Effectiveness of Entropy Minimization in LLM Reasoning",
    use="No verifier exists, and the policy should be more certain at every token.",
    tags=("unsupervised", "entropy"),
    checked=("golden", "properties"),
    source=Source("paper", "eq. 4, table 1 and section 3.3 of the paper"),
    plan="not stated in any source that was opened; one update per step",
    deviations=("The estimator of the KL, k3, is our choice.",),
    audit=(
        "formula compared with the file's own account; shivamag125/EM_PT was opened and has no "
        "training code, and the second reader could not open the paper"
    ),
    shown=("docs/claims.md#unlabelled",),
)
