"""AdaCoT: penalties for missing and for needless thinking. Lou et al., 2025, arXiv:2505.11896."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import Aggregation, sequence_mean
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def adacot(
    group_size: PositiveInt = 8,
    missed_penalty: NonNegative = 0.2,
    overuse_penalty: NonNegative = 0.3,
    format_penalty: NonNegative = 1.0,
) -> Method:
    """r = base - missed_penalty P_miss - overuse_penalty P_over - format_penalty P_fmt.

    Reward terms: "think", "needed" (a label of the task) and "format". The signal "step/decision"
    is 1 at the first token after the thinking opens where all tasks need thinking (selective loss
    masking), else 0.

    The paper varies the first two penalties to trade accuracy for cost.

    Args:
        group_size: rollouts per task (our choice).
        missed_penalty: lost if thinking is needed and missing (our choice).
        overuse_penalty: lost if thinking is present and not needed (our choice).
        format_penalty: lost by a malformed answer (our choice).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(
            ThinkingTriggerPenalty(missed_penalty, overuse_penalty, format_penalty),
            Center(),
            ScaleByStd(),
        ),
        aggregation=MaskDecisionTokens(),
    )


REWARD_TERMS = ("think", "needed", "format")


@component
class ThinkingTriggerPenalty:
    """x minus penalties for missing thinking, needless thinking and a malformed answer.

    The reward terms "think", "needed" and "format" are true above 1/2: the rollout thinks, the task
    needs thinking, the answer is well formed.

    Args:
        missed_penalty: lost if thinking is needed and missing.
        overuse_penalty: lost if thinking is present and not needed.
        format_penalty: lost by a malformed answer.
    """

    missed_penalty: NumberOrSchedule
    overuse_penalty: NumberOrSchedule
    format_penalty: NumberOrSchedule

    requires = Requires(reward_terms=REWARD_TERMS)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        think, needed, well_formed = (batch.reward_terms[name] > 0.5 for name in REWARD_TERMS)
        missed = (needed & ~think).to(x)
        overused = (think & ~needed).to(x)
        malformed = (~well_formed).to(x)
        return (
            x
            - self.missed_penalty * missed
            - self.overuse_penalty * overused
            - self.format_penalty * malformed
        )


@component
class MaskDecisionTokens:
    """Weights of another aggregation, 0 for the tokens that decide whether to think.

    Args:
        aggregation: weights before the mask.
    """

    aggregation: Aggregation = sequence_mean

    # 1 at decision tokens, which are not trained on
    requires = Requires(signals=("step/decision",))

    def __call__(self, batch: Batch) -> PerAction:
        return self.aggregation(batch).masked_fill(batch.signals["step/decision"] > 0, 0.0)


PAPER = Paper(
    title="AdaCoT: Pareto-Optimal Adaptive Chain-of-Thought Triggering via Reinforcement Learning",
    use="The tasks that need thinking are labelled, and the model should think for those alone.",
    tags=("length", "reward"),
    checked=("golden", "properties", "run"),
    catalogue=("adacot",),
    source=Source(
        "third_party",
        "a public survey of rewards that quotes the reward and L_SLM; the abstract",
    ),
    plan="not stated in any source that was opened; one update per step",
    missing=(
        "The SFT stage with labels of the tasks that need thinking.",
        "The critic: the paper trains by PPO.",
        "The paper's base reward is a reward model's and its labels another model's (a public "
        "note).",
    ),
    deviations=(
        "The reward applies to a group without a critic.",
        "L_SLM is a sum over the other tokens; here a mean over answers that counts the masked "
        "token in the length.",
        "Group, clip and the mean over answers are our choice: no source that was opened has them.",
    ),
    audit=(
        "reward and selective loss masking compared with a public survey of rewards that quotes "
        "both; the penalties' values could not be checked"
    ),
)
