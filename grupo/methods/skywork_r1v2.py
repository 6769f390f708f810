"""Skywork R1V2: GRPO with a selective sample buffer. Wei et al., 2025, arXiv:2504.16656."""

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.losses import Clip
from grupo.algo.replay_rules import FillFromBuffer
from grupo.core.numbers import Fraction, NonNegativeInt, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def skywork_r1v2(
    group_size: PositiveInt = 8,
    capacity: PositiveInt = 1024,
    max_age: NonNegativeInt = 4,
    max_share: Fraction = 0.5,
) -> Method:
    """GRPO whose rollouts without an advantage give their places to those of a buffer.

    Rollouts of the last steps are drawn by |A| / sum |A|. They keep their advantages and the
    probabilities of the policy that generated them. The reward of the paper has a rule, a format
    and a reward model (`LearnedReward`). The paper trains with `mpo` too.

    Args:
        group_size: rollouts per task (our choice).
        capacity: rollouts in the buffer (our choice).
        max_age: steps after which a rollout is not drawn any more (our choice).
        max_share: largest share of drawn rollouts in a batch (our choice).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(), ScaleByStd()),
        loss=Clip(),
        replay=FillFromBuffer(capacity, max_age=max_age, max_share=max_share),
    )


PAPER = Paper(
    title="Skywork R1V2: Multimodal Hybrid Reinforcement Learning for Reasoning",
    use="The share of rollouts with an advantage falls as the policy improves.",
    tags=("off-policy", "reward", "multimodal"),
    checked=("golden", "properties", "run"),
    catalogue=("skywork-r1v2",),
    source=Source(
        "third_party",
        "the abstract and public notes on the paper: parts of the reward, the buffer's principle, "
        "and the share of rollouts with an advantage that falls from 60 to 40 percent",
    ),
    plan="not stated in any source that was opened; one update per step",
    missing=(
        "Thresholds of the reward against visual hallucination, whose values no source states.",
        "The buffer as a filter of the prompts before training, which the notes name.",
        "Training of the adapter alone: the policy's choice of weights.",
    ),
    deviations=(
        "Capacity, age limit and share of the buffer are our choice.",
        "The draw in proportion to |A| is from memory.",
        "Clip and the mean over answers are GRPO's, and there is no KL divergence: no source that"
        " was opened states the paper's.",
    ),
    audit=(
        "compared with the catalogue's row and the abstract; the full paper could not be opened, "
        "and SkyworkAI/Skywork-R1V has no training code"
    ),
    shown=(
        "docs/guidance_shown/selective_replay.md#results",
        "tests/methods/test_skywork_r1v2.py"
        "::test_rollouts_are_drawn_by_the_size_of_their_advantage",
    ),
)
