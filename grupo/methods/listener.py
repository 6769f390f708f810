"""Listener: be right, and convince another. Gambashidze et al., 2025, arXiv:2506.22832."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.losses import Clip
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Listener-Rewarded Thinking in VLMs for Image Preferences",
    use="A model picks the right image, and its reasoning argues for the other one.",
    checked=("golden", "laws", "run"),
    catalogue=("listener-rewarded-thinking",),
)


@component
class ListenerReward:
    """r = f (1 + correct c + listener p), f the format, c right or wrong, p the listener's trust.

    p is paid only where it is above `min_confidence`.
    """

    correct_coef: float = 0.5
    listener_coef: float = 0.5
    min_confidence: float = 0.0
    required_reward_terms = (
        "format",
        "correct",
        "listener",
    )  # the last: the true answer's probability

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        p = batch.reward_terms["listener"]
        paid = p * (p > self.min_confidence)
        earned = 1 + self.correct_coef * batch.reward_terms["correct"] + self.listener_coef * paid
        return batch.reward_terms["format"] * earned


def listener(
    group_size: int = 8,
    clip_eps: float = 0.2,
    correct_coef: float = 0.5,
    listener_coef: float = 0.5,
    min_confidence: float = 0.0,
) -> Method:
    """r = format + `correct_coef` c + `listener_coef` p, A = (r - mean(r)) / std(r); 0 if the format fails.

    p = reward_terms["listener"]: what a frozen model that reads the question and the reasoning, its
    answer cut off, gives to the true answer.
    """
    # The coefficients are second-hand. That the format gates the rest, `min_confidence`, the group and the
    # clip are our choice.
    r = ListenerReward(correct_coef, listener_coef, min_confidence)
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(r, Center(), ScaleByStd()),
        loss=Clip(clip_eps, clip_eps),
    )
