"""EMPO: common meanings are rewarded, without labels. Zhang et al., 2025, arXiv:2504.05812."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.losses import Clip
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import check_field, component
from grupo.core.dynamic_number import DynamicNumber
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def empo(
    group_size: PositiveInt = 7,
    clip_eps: NonNegative = 0.2,
    min_entropy: NonNegative = 0.0,
    max_entropy: NonNegative = 1.0,
) -> Method:
    """A = (r - mean(r)) / std(r), r the frequency of the answer's meaning in its group; no KL.

    Reward terms: "cluster" is the label of each answer's meaning; it is negative for a rollout
    without an answer. A group contributes only if min_entropy < H / ln G < max_entropy, where H is
    the entropy of its labels and G its number of rollouts.

    Args:
        group_size: rollouts per task (authors' code: 7).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        min_entropy: lower bound on H / ln G.
        max_entropy: upper bound on H / ln G.
    """
    advantage = chain(
        ClusterFrequency(min_entropy=min_entropy, max_entropy=max_entropy), Center(), ScaleByStd()
    )
    return Method(
        sampler=GroupSampler(group_size), advantage=advantage, loss=Clip(clip_eps, clip_eps)
    )


@component
class ClusterFrequency:
    """r = p_c, the fraction of the group in the answer's cluster; 0 where the label is negative.

    A group gets 0 unless min_entropy < H / ln G < max_entropy, with H = -sum_c p_c ln p_c. In H
    each rollout without an answer is a cluster of its own.

    Args:
        reward_term: reward term with the cluster label of each answer; negative where there is
            none.
        min_entropy: lower bound on H / ln G.
        max_entropy: upper bound on H / ln G.
    """

    reward_term: str = "cluster"
    min_entropy: NumberOrSchedule = 0.0
    max_entropy: NumberOrSchedule = 1.0

    def __post_init__(self) -> None:
        low, high = self.min_entropy, self.max_entropy
        if not any(isinstance(bound, DynamicNumber) for bound in (low, high)):
            check_field(self, "max_entropy", high >= low, f"min_entropy, {low}, or more")

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.reward_term,))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        G = group_ops.count(x, batch.group)
        answered = batch.reward_terms[self.reward_term] >= 0
        unique_label = -1 - torch.arange(len(x))  # rollouts without an answer are clusters of one
        cluster = torch.where(answered, batch.reward_terms[self.reward_term], unique_label)
        p = group_ops.count_equal(cluster, batch.group) / G
        H = group_ops.entropy(cluster, batch.group)
        uncertain = (self.min_entropy * G.log() < H) & (self.max_entropy * G.log() - 1e-9 > H)
        return p * (answered & uncertain)


PAPER = Paper(
    title="Right Question is Already Half the Answer: Fully Unsupervised LLM Reasoning"
    " Incentivization",
    use="There are no reference answers, and answers can be clustered by their meaning.",
    tags=("unsupervised", "entropy"),
    checked=("golden", "properties", "reference"),
    catalogue=("empo",),
    source=Source(
        "code",
        "QingyangZhang/EMPO, trl/recipes/Qwen2.5/rl/config_EMPO_NM_COT_20K_1.5B.yaml and "
        "trl/src/open_r1/rewards.py",
    ),
    plan=(
        "config_EMPO_NM_COT_20K_1.5B.yaml and EMPOTrainer.compute_loss: an optimizer step has 7 "
        "answers to each of 112 prompts, one prompt for each of 7 processes and each of 16 "
        "accumulation steps. This is one update per step, in which the clip does not act"
    ),
    missing=(
        "The verl variant: groups of 16, GSPO's ratio and clips, 8 updates per step.",
        (
            "The rewards of free text: -0.5 for an answer that cannot be parsed, 0 for a copy of "
            "the question and where max p < 1/5."
        ),
        (
            "Sampling at a temperature of 0.9, the default of the TRL version of requirements.txt; "
            "the loss is that of temperature 1."
        ),
    ),
    deviations=(
        (
            "The paper keeps questions with d_low < H < d_high. The TRL code drops only groups "
            "whose answers all differ (max_entropy = 1). The verl code drops no group, because it "
            "does not call its rule, which asks for max p of 1/4 or more."
        ),
        "1e-6 is added to standard deviations, in the TRL code 1e-4. The TRL code has no clip.",
    ),
    audit=(
        "reward and entropy threshold compared with get_empo_math_reward, group, KL and batch "
        "sizes with the configuration"
    ),
    shown=("docs/claims.md#unlabelled",),
)
