"""MM-UPT: a model goes on learning from its own majority. Wei et al., 2025, arXiv:2505.22453."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.losses import KL, Clip
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Unsupervised Post-Training for Multi-Modal LLM Reasoning via GRPO",
    use="Questions with images and no answers; most answers of the model are right already.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("mm-upt",),
)


@component
class MajorityClusterReward:
    """r = 1 in the largest cluster of the group's answers, all of them where several are; else 0.

    Whose label is below 0 has no answer, does not vote and gets 0.
    """

    reward_term: str = "cluster"

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """Labels of what answers mean; below 0: no answer."""
        return (self.reward_term,)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        answered = batch.reward_terms[self.reward_term] >= 0
        votes = group_ops.count_equal(batch.reward_terms[self.reward_term], batch.group) * answered
        return (answered & (votes == group_ops.max(votes, batch.group))).to(x)


def mm_upt(group_size: int = 10, clip_eps: float = 0.2, kl_coef: float = 0.01) -> Method:
    """r = 1 for who says what most say, A = (r - mean(r)) / std(r).

    reward_terms["cluster"] labels the meaning of each answer, below 0 where there is none.
    """
    # Group and KL are the released run's. Its votes are by spelling, the first seen wins a tie, and
    # answers that cannot be read vote for one another; here they are by meaning, ties share.
    loss = Clip(clip_eps, clip_eps) + kl_coef * KL()
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(MajorityClusterReward(), Center(), ScaleByStd()),
        loss=loss,
    )
