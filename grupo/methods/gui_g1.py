"""GUI-G1: box rewards without length or difficulty bias. Zhou et al., 2025, arXiv:2505.15810."""

from torch import Tensor

from grupo.algo.advantages import Center, PerRewardTerm, chain, identity
from grupo.algo.aggregation import ConstantLength
from grupo.algo.losses import Clip
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def gui_g1(
    group_size: PositiveInt = 8,
    clip_eps: NonNegative = 0.2,
    iou_coef: NonNegative = 0.25,
    box_coef: NonNegative = 0.125,
) -> Method:
    """A = w (r - mean(r)), r = hit + iou_coef iou + box_coef box; token sums divided by 64.

    Reward terms: "hit", "iou" and "box", those of `BoxCenterHit`, `BoxIoU` and `BoxCloseness`, and
    "difficulty", w > 0, larger for small targets.

    Args:
        group_size: rollouts per task (authors' script: 8).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        iou_coef: weight of the intersection over union (authors' code: 0.25).
        box_coef: weight of the box size (authors' code: 0.125).
    """
    # The constant 64 is that of the released trainer.
    r = PerRewardTerm(identity, (("hit", 1.0), ("iou", iou_coef), ("box", box_coef)))
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(r, Center(), ScaleByRewardTerm("difficulty")),
        loss=Clip(clip_eps, clip_eps),
        aggregation=ConstantLength(64),
    )


@component
class ScaleByRewardTerm:
    """x w, with w the value of `reward_term` for each rollout.

    Args:
        reward_term: name of the reward term that is read.
    """

    reward_term: str

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.reward_term,))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x * batch.reward_terms[self.reward_term]


PAPER = Paper(
    title="GUI-G1: Understanding R1-Zero-Like Training for Visual Grounding in GUI Agents",
    use="The answer is a box on a screen, and boxes grow or shrink to please the reward.",
    tags=("multimodal", "reward", "curriculum"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("gui-g1",),
    source=Source(
        "code",
        "Yuqi-Zhou/GUI-G1, src/open-r1-multimodal: src/open_r1/trainer/grpo_trainer.py, "
        "src/open_r1/grpo_rec.py and run_scripts/run.sh",
    ),
    plan="one update per step: run.sh leaves num_iterations at 1 and accumulates 2 batches",
    missing=(
        (
            'The weight w of a target: the release reads it from the data\'s column "rate", and '
            "the formula was in no source."
        ),
        "The prompt that asks for the box without reasoning, at most 128 new tokens.",
        "The temperature of 0.9 at which run.sh samples.",
    ),
    deviations=("The release counts an overlap of one pixel in width or height as none.",),
    audit=(
        "advantage without standard deviation, token sum times rate over 64 and the clip "
        "compared with grpo_trainer.py, group size and beta 0 with run.sh; the weights of the box "
        "rewards with grpo_rec.py"
    ),
)
