"""CGPO, CODPO: the best that judges accept against the worst. Xu et al., 2024, arXiv:2409.20370."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import rollout_mean
from grupo.algo.losses.dpo import DPOBestWorst
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="The Perfect Blend: Redefining RLHF with Mixture of Judges",
    use="Feasible and infeasible answers stand side by side in most groups.",
    checked=("golden", "laws", "run"),
    catalogue=("cgpo",),
)


def cgpo_codpo(group_size: int = 4, beta: float = 0.1, nll_coef: float = 5.0) -> Method:
    """DPO between a group's best feasible and its worst infeasible answer, and NLL of the former.

    loss = -log sigmoid(`beta` (h(y_w) - h(y_l))) - `nll_coef` / |y_w| log pi(y_w), h = log(pi / pi_ref);
    a mean over groups. Reward terms: "feasible", 1 where all judges accept; the reward is the model's.
    """
    # As TRL's draft of a CGPOTrainer has it; answers of equal reward share their place.
    loss = DPOBestWorst(beta, nll_coef)
    return Method(
        sampler=GroupSampler(group_size), advantage=identity, loss=loss, aggregation=rollout_mean
    )
