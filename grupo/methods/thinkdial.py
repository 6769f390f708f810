"""ThinkDial: the prompt sets the weight of brevity. He et al., 2025, arXiv:2508.18773."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.reward_shaping import length_reward, value_for_label
from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.curricula import DynamicSampling, ShuffledTasks
from grupo.rollouts.samplers import GroupSampler


def thinkdial(
    group_size: PositiveInt = 16,
    length_coefs: tuple[NonNegative, ...] = (0.0, 0.5, 1.0),
    max_resample_rounds: PositiveInt = 10,
) -> Method:
    """DAPO with r = outcome + length_coefs[mode] brevity +- 1/2; modes: high, medium, low effort.

    Reward terms: "mode" 0, 1 or 2, as the prompt requires, "correct", and "leak": 1 if the answer
    after the thinking continues to reason ("Wait", "Let me think", "Alternatively" and similar).

    Args:
        group_size: rollouts per task (DAPO's value).
        length_coefs: weight of brevity in each mode.
        max_resample_rounds: most rounds of dynamic sampling in a step (DAPO's value).
    """
    # The clip is DAPO's.
    return Method(
        curriculum=DynamicSampling(ShuffledTasks(), max_resample_rounds),
        sampler=GroupSampler(group_size),
        filter=keep_nonzero_std,
        advantage=chain(EffortModeReward(length_coefs), Center(), ScaleByStd()),
        loss=Clip(0.2, 0.28),
        aggregation=token_mean,
    )


REWARD_TERMS = ("mode", "correct", "leak")


@component
class EffortModeReward:
    """r = o + length_coefs[mode] b +- 1/2, minus if the answer leaks reasoning (eq. 1 to 5).

    b is 1/2 for the shortest of the group to -1/2 for the longest, at most 0 for wrong answers.
    "mode" is 0, 1, 2 ...; "correct" and "leak" are yes above 1/2.

    Args:
        length_coefs: weight of b in each mode.
    """

    length_coefs: tuple[NumberOrSchedule, ...]

    # `mode` is an index of `length_coefs`
    requires = Requires(reward_terms=REWARD_TERMS, bounded_rewards=("mode",))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        mode, o, leak = (batch.reward_terms[name] for name in REWARD_TERMS)
        b = length_reward(o > 0.5, batch)
        return o + value_for_label(self.length_coefs, mode) * b + 0.5 - (leak > 0.5).to(o)


PAPER = Paper(
    title="ThinkDial: An Open Recipe for Controlling Reasoning Effort in Large Language Models",
    use="One model should reason much, medium or little, as its prompt requires.",
    tags=("length", "reward"),
    checked=("golden", "properties", "run"),
    catalogue=("thinkdial",),
    source=Source("paper", "eq. 1 to 5 and the settings, as the catalogue's row has them"),
    plan="not stated in any source that was opened; one update per step",
    missing=(
        "The SFT stage on reasoning that is cut to a half and a quarter.",
        (
            "The first phase of RL, 95 steps of DAPO with the high mode alone; this is the "
            "second, of 40."
        ),
        "A filter on r: the filter reads the recipe's reward.",
    ),
    audit=(
        "formula as in the catalogue's row, which was taken from the paper's text; no document "
        "could be opened"
    ),
)
