"""MM-UPT: the group's majority answer is the label. Wei et al., 2025, arXiv:2505.22453."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def mm_upt(
    group_size: PositiveInt = 10, clip_eps: NonNegative = 0.2, kl_coef: NonNegative = 0.01
) -> Method:
    """A = (r - mean(r)) / std(r), r = 1 for answers with the majority's meaning.

    Reward terms: "cluster" labels the meaning of each answer, negative where there is none.

    A step has 4 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task (authors' code: 10).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        kl_coef: weight of the KL divergence from the reference policy (authors' code: 0.01).
    """
    loss = Clip(clip_eps, clip_eps) + kl_coef * KL()
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(MajorityClusterReward(), Center(), ScaleByStd()),
        loss=loss,
        updates=Updates(minibatches=4),
    )


@component
class MajorityClusterReward:
    """r = 1 in the largest cluster of the group's answers, in all of them on a tie; else 0.

    A negative label means no answer: the rollout does not vote and gets 0.

    Args:
        reward_term: reward term with the cluster label of each answer.
    """

    reward_term: str = "cluster"

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.reward_term,))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        answered = batch.reward_terms[self.reward_term] >= 0
        votes = group_ops.count_equal(batch.reward_terms[self.reward_term], batch.group) * answered
        return (answered & (votes == group_ops.max(votes, batch.group))).to(x)


PAPER = Paper(
    title="Unsupervised Post-Training for Multi-Modal LLM Reasoning via GRPO",
    use="Questions with images and no answers; most answers of the policy are correct already.",
    tags=("unsupervised", "multimodal"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("mm-upt",),
    source=Source(
        "code",
        "waltonfuture/MM-UPT: verl/workers/reward/function.py, examples/config.yaml, "
        "examples/qwen2_5_vl_7b_mmr1.sh",
    ),
    plan="examples/config.yaml: 512 prompts per step in minibatches of 128, 4 updates",
    missing=(
        "The questions that the model itself writes, from images with or without an example.",
        "The framework's upper clip of 0.3, dual clip of 3 and clamp of k3 to +-10.",
        "The temperature of 0.7 and the top-p of 0.99 with which the configuration samples.",
    ),
    deviations=(
        (
            "Votes are by meaning and ties share: in the released run votes are by spelling, "
            "the first seen wins a tie, and unreadable answers vote for one another. Its reward "
            "is 1 for answers that mathruler grades as equal to the winner."
        ),
        (
            "The mean is over answers, as GRPO's: the framework's is over the tokens of 4 rollouts "
            "at a time."
        ),
    ),
    audit=(
        "group size, KL weight, clips and plan compared with the configuration and the "
        "framework's code, votes with function.py"
    ),
    shown=("docs/claims.md#unlabelled",),
)
