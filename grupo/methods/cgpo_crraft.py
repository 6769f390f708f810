"""CGPO, CRRAFT: imitate the best feasible answer. Xu et al., 2024, arXiv:2409.20370."""

from grupo.algo.advantages import chain
from grupo.algo.advantages.constraints import CalibratedReward, KLGated, best_of_group
from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Reinforce
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def cgpo_crraft(group_size: PositiveInt = 4, max_kl: NonNegative = 10.0) -> Method:
    """loss = -R log pi(y) of the group's best y, R = F 1[k <= max_kl] sigmoid(r - r_ref).

    The mean is over all rollouts, of which one in a group counts.
    k = log pi_old(y) - log pi_ref(y).
    Reward terms: "feasible", F, and "baseline", r_ref.

    Args:
        group_size: rollouts per task (TRL's draft: 4).
        max_kl: largest k of an answer that counts, in nats (KL_max; our choice).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(CalibratedReward(), KLGated(max_kl), best_of_group),
        loss=Reinforce(),
        aggregation=token_sum,
    )


PAPER = Paper(
    title="The Perfect Blend: Redefining RLHF with Mixture of Judges",
    use="CRPG is unstable: imitation of the best feasible answer changes the policy less.",
    tags=("reward", "sft", "kl"),
    checked=("golden", "properties", "run"),
    catalogue=("cgpo",),
    source=Source("third_party", "TRL's draft of a CGPOTrainer, which cites eq. 14 and 18"),
    plan="not stated in any source that was opened; one update per step",
    missing=(
        "The mixture of tasks, each with its own judges and optimizer.",
        "The temperature of 0.9 of the draft, and its optional penalty for an answer without end.",
    ),
    deviations=(
        (
            "In groups without a feasible answer near the reference the draft imitates the "
            "baseline answer with weight 1/2, if it is feasible and near the reference: it is no "
            "rollout here, so such groups have no loss."
        ),
        "Answers of equal R share their place; the draft takes the first.",
        "The mean is over all rollouts; in the draft, over the groups whose best R is not 0.",
    ),
    audit=(
        "formula and group size compared with crraft_optimization of TRL's draft; an earlier "
        "reader compared the sum over the sequence with the paper"
    ),
)
