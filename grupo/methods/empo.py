"""EMPO: be right as often as you agree with yourself. Zhang et al., 2025, arXiv:2504.05812."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.losses import Clip
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Right Question is Already Half the Answer: Fully Unsupervised LLM Reasoning"
    " Incentivization",
    use="There are questions and no answers, and answers can be grouped by their meaning.",
    checked=("golden", "laws", "reference"),
    catalogue=("empo",),
)


@component
class ClusterFrequency:
    """r = p_c, the share of the group whose answer means the same; 0 where `part` is below 0.

    A group gets 0 unless low ln G < H < high ln G, H = -sum_c p_c ln p_c; in H who has no answer
    is a meaning of his own.
    """

    reward_term: str = "cluster"
    min_entropy: float = 0.0
    max_entropy: float = 1.0

    @property
    def required_reward_terms(self) -> tuple[str, ...]:
        """Labels of what answers mean."""
        return (self.reward_term,)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        G, answered = group_ops.count(x, batch.group), batch.reward_terms[self.reward_term] >= 0
        own = -1 - torch.arange(len(x))  # a meaning of his own for who has no answer
        meaning = torch.where(answered, batch.reward_terms[self.reward_term], own)
        p, H = (
            group_ops.count_equal(meaning, batch.group) / G,
            group_ops.entropy(meaning, batch.group),
        )
        uncertain = (self.min_entropy * G.log() < H) & (self.max_entropy * G.log() - 1e-9 > H)
        return p * (answered & uncertain)


def empo(
    group_size: int = 7, clip_eps: float = 0.2, min_entropy: float = 0.0, max_entropy: float = 1.0
) -> Method:
    """r = share of the group with the same meaning, A = (r - mean(r)) / std(r), no KL.

    parts["cluster"] labels what answers mean, below 0 where there is none. Groups learn nothing
    unless `low` < H / ln G < `high`, H the entropy of the labels.
    """
    # The paper keeps questions with d_low < H < d_high; the released TRL code only drops groups
    # whose answers all differ, which is `high` = 1, and samples 7. Its verl code drops max p < 1/4.
    credit = chain(
        ClusterFrequency(min_entropy=min_entropy, max_entropy=max_entropy), Center(), ScaleByStd()
    )
    return Method(sampler=GroupSampler(group_size), advantage=credit, loss=Clip(clip_eps, clip_eps))
