"""TW-GRPO: tokens count more where the group disagrees. Dang et al., 2025, arXiv:2505.24718."""

from grupo.algo.advantages import Center, PerRewardTerm, ScaleByStd, chain, identity
from grupo.algo.aggregation import Aggregation, token_mean
from grupo.algo.losses import Clip
from grupo.algo.token_level import row_max
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def tw_grpo(
    group_size: PositiveInt = 8,
    max_weight: NonNegative = 1.7,
    clip_low: NonNegative = 0.2,
    clip_high: NonNegative = 0.28,
) -> Method:
    """loss = sum w_t l / number of tokens, w_t = 1 + (max_weight - 1) (D_t - min D) / (max D - min
    D).

    D_t = mean_i sum_v (e^d - d - 1), d = mean_i log pi_i - log pi_i at position t of the group's
    rollouts, ended ones being uniform; l is GRPO's clipped loss. Reward terms: "correct" and
    "format", added.

    Args:
        group_size: rollouts per task.
        max_weight: weight at the largest disagreement (authors' script: 1.7).
        clip_low: ratios are clipped below at 1 - clip_low (authors' code: 0.2).
        clip_high: ratios are clipped above at 1 + clip_high (authors' code: 0.28).
    """
    # "correct" is graded in the paper: the fraction of the correct options that was chosen, 0 if a
    # wrong one was (grupo.rewards.OptionSubset).
    reward = PerRewardTerm(identity, (("correct", 1.0), ("format", 1.0)))
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(reward, Center(), ScaleByStd()),
        loss=Clip(clip_low, clip_high),
        aggregation=DisagreementWeighted(max_weight),
    )


@component
class DisagreementWeighted:
    """Weight of `aggregation` x (1 + (max_weight - 1) D), D the group's disagreement at the
    position.

    D is scaled to [0, 1] within the group.

    Args:
        max_weight: weight at the largest disagreement.
        aggregation: aggregation that is weighted.
    """

    max_weight: NumberOrSchedule
    aggregation: Aggregation = token_mean

    requires = Requires(signals=("disagreement",))

    def __call__(self, batch: Batch) -> PerAction:
        D = batch.signals["disagreement"].double()
        largest = group_ops.max(row_max(D, batch)[:, 0], batch.row_group)[:, None]
        smallest = -group_ops.max(row_max(-D, batch)[:, 0], batch.row_group)[:, None]
        scaled = (D - smallest) / (largest - smallest).clamp(min=1e-8)
        focus = 1 + (self.max_weight - 1) * scaled.masked_fill(~batch.mask, 0.0)
        return self.aggregation(batch) * focus.to(batch.old_logp)


PAPER = Paper(
    title="Reinforcing Video Reasoning with Focused Thinking",
    use="Answers begin alike and diverge at a few positions, which should be trained on most.",
    tags=("aggregation", "multimodal"),
    checked=("golden", "properties", "run"),
    catalogue=("tw-grpo",),
    source=Source(
        "code",
        "longmalongma/TW-GRPO, src/open_r1/trainer/grpo_trainer.py and scripts/tw-grpo.sh",
    ),
    plan=(
        "grpo_trainer.py: the old log-probabilities are those of the update: one update per step"
    ),
    missing=(
        "A table on videos: the one shown is on pictures.",
        "The top-k of 50 that transformers 4 has by default, where the trainer names none.",
    ),
    deviations=(
        "The weights are constants; the release does not detach them.",
        "The std gains 1e-6, in the release 1e-4.",
        "Inverted questions (grupo.tasks.InvertedQuestions) keep their capitals, and a question"
        " without a verb to negate keeps its answer; the release inverts its options alone.",
    ),
    audit="weights, loss and constants compared with grpo_trainer.py and tw-grpo.sh",
    shown=("docs/vision_shown/landed_methods.md#tw-grpo",),
)
