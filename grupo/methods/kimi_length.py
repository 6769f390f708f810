"""Kimi length penalty: short and right beats long and right. Kimi Team, 2025, arXiv:2501.12599."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.reward_shaping import length_reward
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Kimi k1.5: Scaling Reinforcement Learning with LLMs",
    use="Answers are right and too long; how long is too long, the group says.",
    checked=("golden", "laws", "run"),
)


@component
class BrevityBonus:
    """x + weight b, b = 1/2 - (L - min L) / (max L - min L), of the wrong no more than 0."""

    length_coef: float
    reward_term: str = "correct"

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """Who is right: above 1/2."""
        return (self.reward_term,)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x + self.length_coef * length_reward(
            batch.reward_terms[self.reward_term] > 0.5, batch
        )


def kimi_length(group_size: int = 8, length_coef: float = 1.0) -> Method:
    """r + `length_coef` b: b from 1/2 for the shortest of the group to -1/2 for the longest.

    reward_terms["correct"] says who is right; A = (r - mean(r)) / std(r). Section 2.3.3.
    """
    # The paper takes the penalty in only after a while: .but with a schedule as weight. Its own
    # loss is another; group and weight are our choice.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(BrevityBonus(length_coef), Center(), ScaleByStd()),
    )
