"""SRFT: imitation and reward at once, weighed by entropy. Fu et al., 2025, arXiv:2506.19767."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import EntropyWeightedMix, PerSourceMean, SeparateDemos
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithExpertSolution

PAPER = Paper(
    title="SRFT: A Single-Stage Method with Supervised and Reinforcement Fine-Tuning for Reasoning",
    use="One stage instead of SFT and then RL, with no schedule to set.",
    checked=("golden", "laws", "reference", "run"),
)


@component
class SignedCorrectness:
    """1 where `reward_term` is above `success_threshold`, -1 elsewhere."""

    reward_term: str = "correct"
    success_threshold: float = 0.5

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """The component that says who is right."""
        return (self.reward_term,)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return torch.where(
            batch.reward_terms[self.reward_term] > self.success_threshold, 1.0, -1.0
        ).to(x)


def srft(group_size: int = 8, sft_coef: float = 0.5, rl_coef: float = 0.1) -> Method:
    """SFT and RL of demonstrations, and REINFORCE of own rollouts, in one loss.

    demonstrations: w log-likelihood, w = `sft_coef` e^-H, and -A pi, A = (r - mean(r)) / std(r) over
                    own and theirs together, the demonstrator's probability taken as 1
    own rollouts:   `rl_coef` e^H log-likelihood where right, minus log-likelihood where wrong
    """
    # H of each row and the sign of its second weight: as reproduced in Unify-Post-Training; notes
    # on the paper print e^-H twice, against their own words that a high entropy raises it. The
    # paper writes a clip around the demonstration's ratio, which is at most 1: nothing to clip
    # where A > 0. Each source is a mean over its own tokens.
    union = chain(Center(), ScaleByStd())
    return Method(
        sampler=WithExpertSolution(GroupSampler(group_size)),
        advantage=SeparateDemos(SignedCorrectness(), demo_advantage=union),
        loss=EntropyWeightedMix(sft_coef, rl_coef),
        aggregation=PerSourceMean(token_mean),
    )
