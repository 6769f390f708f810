"""CGPO, CRRAFT: learn the best answer that judges accept. Xu et al., 2024, arXiv:2409.20370."""

from grupo.algo.advantages import chain
from grupo.algo.advantages.constraints import CalibratedReward, KLGated, best_of_group
from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Reinforce
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="The Perfect Blend: Redefining RLHF with Mixture of Judges",
    use="CRPG is unsteady: imitation of the best feasible answer moves less, and never astray.",
    checked=("golden", "laws", "run"),
    catalogue=("cgpo",),
)


def cgpo_crraft(group_size: int = 4, max_kl: float = 10.0) -> Method:
    """loss = -R log pi(y) of the group's best y, R = F 1[k <= `max_kl`] sigmoid(r - r_ref).

    Over all rollouts, of which one in a group counts; k = log pi_old(y) - log pi_ref(y). parts:
    "feasible", F, and "baseline", r_ref.
    """
    # As TRL's draft of a CGPOTrainer has it, but for groups without any feasible answer near the
    # reference: there it imitates the baseline with weight 1/2. That is no rollout here, and they
    # teach nothing. `max_kl` (KL_max) is our choice.
    credit = chain(CalibratedReward(), KLGated(max_kl), best_of_group)
    return Method(
        sampler=GroupSampler(group_size), advantage=credit, loss=Reinforce(), aggregation=token_sum
    )
