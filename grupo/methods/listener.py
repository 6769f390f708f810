"""Listener: the reasoning must convince a listener. Gambashidze et al., 2025, arXiv:2506.22832."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.losses import Clip
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def listener(
    group_size: PositiveInt = 8,
    clip_eps: NonNegative = 0.2,
    correct_coef: NonNegative = 0.5,
    listener_coef: NonNegative = 0.5,
    min_confidence: NonNegative = 0.0,
) -> Method:
    """A = (r - mean(r)) / std(r), r = format + correct_coef c + listener_coef p, 0 if the format
    fails.

    Reward terms: "listener" is the probability of the true answer under a frozen model that reads
    the question and the reasoning without its answer.

    Args:
        group_size: rollouts per task (our choice).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (our choice).
        correct_coef: weight of correctness (second-hand).
        listener_coef: weight of the listener's probability (second-hand).
        min_confidence: p counts only above this probability (our choice).
    """
    reward = ListenerReward(correct_coef, listener_coef, min_confidence)
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(reward, Center(), ScaleByStd()),
        loss=Clip(clip_eps, clip_eps),
    )


@component
class ListenerReward:
    """r = f (1 + correct_coef c + listener_coef p), with format f, correctness c and listener p.

    p is the listener's probability of the true answer; it counts as 0 up to min_confidence.

    Args:
        correct_coef: weight of correctness.
        listener_coef: weight of the listener's probability.
        min_confidence: p counts only above this probability.
    """

    correct_coef: NumberOrSchedule = 0.5
    listener_coef: NumberOrSchedule = 0.5
    min_confidence: NumberOrSchedule = 0.0

    requires = Requires(reward_terms=("format", "correct", "listener"))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        p = batch.reward_terms["listener"]
        paid = p * (p > self.min_confidence)
        reward = 1 + self.correct_coef * batch.reward_terms["correct"] + self.listener_coef * paid
        return batch.reward_terms["format"] * reward


PAPER = Paper(
    title="Listener-Rewarded Thinking in VLMs for Image Preferences",
    use="A model picks the correct image while its reasoning argues for the other one.",
    tags=("reward", "multimodal"),
    checked=("golden", "properties", "run"),
    catalogue=("listener-rewarded-thinking",),
    source=Source(
        "third_party",
        "a public note that states the sum of the three terms (the catalogue's row)",
    ),
    plan=(
        "not stated in any source that was opened; one update per step, in which the clip does "
        "not act"
    ),
    deviations=(
        "Our choices: a wrong format sets the whole reward to 0; group_size and clip_eps; the mean "
        "over answers; and no KL divergence.",
        (
            "ListenerProbability normalises over the texts of all options. This is our reading of "
            "the abstract, which does not say how the probability is computed."
        ),
    ),
    audit=(
        "formula compared with the catalogue's row and the file's own account; no document "
        "could be opened"
    ),
    shown=("docs/vision_shown/landed_methods.md#listener-rewarded-thinking",),
)
