"""CHORD-phi: imitate the tokens you are unsure of. Zhang et al., 2025, arXiv:2508.11408."""

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip, MixSFT, PerSourceMean, SeparateDemos, WeightedReinforce
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithExpertSolution

PAPER = Paper(
    title="On-Policy RL Meets Off-Policy Experts: Harmonizing Supervised Fine-Tuning and "
    "Reinforcement Learning via Dynamic Weighting",
    use="Learn from demonstrations in another style without giving up your own.",
    checked=("golden", "laws", "reference", "run"),
)


def uncertainty_weight(pi: Signals, batch: Batch) -> PerAction:
    """p (1 - p): greatest where the policy is in two minds, 0 where it is sure or has no idea."""
    p = pi.logp.exp()
    return p * (1 - p)


def chord_phi(group_size: int = 8, sft_weight: float = 0.1, clip_eps: float = 0.2) -> Method:
    """loss = (1 - mu) GRPO + mu mean of -sg(p (1 - p)) log p over the tokens of demonstrations.

    mu is `sft_weight`, the same throughout; GRPO of own rollouts, a mean over its own tokens.
    """
    # mu 0.1 from peak to valley: so the authors' example (Trinity-RFT), from memory. The weight is
    # held constant, as the paper has it; ms-swift let a gradient through until its PR 6952.
    return Method(
        sampler=WithExpertSolution(GroupSampler(group_size)),
        advantage=SeparateDemos(chain(Center(), ScaleByStd())),
        loss=MixSFT(sft_weight, Clip(clip_eps, clip_eps), WeightedReinforce(uncertainty_weight)),
        aggregation=PerSourceMean(token_mean),
    )
