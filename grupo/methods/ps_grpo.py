"""PS-GRPO: answer alike, however the question is put. Hamman et al., 2025, arXiv:2510.04392."""

from grupo.algo.advantages import (
    ByRewardTerm,
    Center,
    GroupedBy,
    PerRewardTerm,
    ScaleByStd,
    chain,
    identity,
)
from grupo.algo.losses import KL, Clip
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import ParaphraseSampler

PAPER = Paper(
    title="Improving Consistency in Retrieval-Augmented Systems with Group Similarity Rewards",
    use="The same question in other words, with other documents, gets another answer.",
    checked=("golden", "laws", "run"),
    catalogue=("con-rag-ps-grpo",),
)


def ps_grpo(
    group_size: int = 4, accuracy_coef: float = 1.0, clip_eps: float = 0.2, kl_coef: float = 0.04
) -> Method:
    """r = mean similarity to answers to the other paraphrases + `accuracy_coef` times the accuracy.

    `group_size` rollouts of each paraphrase; A = (r - mean(r)) / std(r) among those of the same one.
    Reward terms: "agreement" and "agreement/prompt", by `rewards.agreement.Agreement`, and "correct".
    """
    # 4 rollouts of each of 6 paraphrases in the paper, BLEU-2, and the similarity to one rollout of
    # three others, drawn anew, in place of all: all are compared here. The weight of the accuracy,
    # token F1 there, and of the KL were not seen; accuracy=0 where answers are long and free.
    r = PerRewardTerm(identity, (("agreement", 1.0), ("correct", accuracy_coef)))
    compared = GroupedBy(chain(Center(), ScaleByStd()), ByRewardTerm("agreement/prompt"))
    return Method(
        sampler=ParaphraseSampler(group_size),
        advantage=chain(r, compared),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
    )
