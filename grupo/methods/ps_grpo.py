"""PS-GRPO: paraphrased questions get the same answer. Hamman et al., 2025, arXiv:2510.04392."""

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
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import ParaphraseSampler


def ps_grpo(
    group_size: PositiveInt = 4,
    accuracy_coef: NonNegative = 1.0,
    clip_eps: NonNegative = 0.2,
    kl_coef: NonNegative = 0.04,
) -> Method:
    """r = mean similarity to answers to the other paraphrases + accuracy_coef times the accuracy.

    A = (r - mean(r)) / std(r) among rollouts of the same paraphrase. Reward terms: "agreement" and
    "agreement/prompt", by `rewards.agreement.Agreement`, and "correct".

    Args:
        group_size: rollouts per paraphrase (the paper has 4 of each of 6).
        accuracy_coef: weight of the accuracy; 0 for long free-form answers (our choice).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        kl_coef: weight of the KL divergence from the reference policy (our choice).
    """
    reward = PerRewardTerm(identity, (("agreement", 1.0), ("correct", accuracy_coef)))
    per_prompt = GroupedBy(chain(Center(), ScaleByStd()), ByRewardTerm("agreement/prompt"))
    return Method(
        sampler=ParaphraseSampler(group_size),
        advantage=chain(reward, per_prompt),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
    )


PAPER = Paper(
    title="Improving Consistency in Retrieval-Augmented Systems with Group Similarity Rewards",
    use="A question gets another answer when it is reworded or comes with other documents.",
    tags=("reward",),
    checked=("golden", "properties", "run"),
    catalogue=("con-rag-ps-grpo",),
    source=Source(
        "third_party",
        "public reviews of the submission; the exact sum is from memory",
    ),
    plan="not stated in any source that was opened; one update per step",
    missing=(
        (
            "The similarity, BLEU-2, and the accuracy, token F1, of the paper: both are the "
            "environment's."
        ),
    ),
    deviations=(
        (
            "A rollout is compared with all rollouts of the other paraphrases, in the paper with "
            "one rollout of three random ones."
        ),
        "The clip of 0.2, the mean over answers and the estimator k3 are our choice.",
    ),
    audit=(
        "formula compared with the catalogue's row and the file's own account; no document could "
        "be opened"
    ),
)
