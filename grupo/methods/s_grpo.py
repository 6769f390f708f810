"""S-GRPO: the first correct early exit earns most. Dai et al., 2025, arXiv:2505.07686."""

from torch import Tensor

from grupo.algo.advantages import Center, chain
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import EarlyExits


def s_grpo(num_exits: PositiveInt = 7, think_end: str = "</think>") -> Method:
    """A = r - mean(r), r = 1, 1/2, 1/4 ... for the first, second, third correct exit of one
    reasoning path.

    The group is num_exits early exits and the whole path. The instruction to answer and the forced
    think_end are masked.

    Args:
        num_exits: early exits of a path.
        think_end: text that ends the thinking.
    """
    # With the std: .replace(advantage=chain(DecayingReward(), Center(), ScaleByStd())). Where only
    # the whole path is correct, means over rows lower the probability of the shared beginning,
    # since wrong exits are short. Where all are correct the late exits are lowered, and since the
    # forced think_end is masked nothing replaces it: after long training one toy model of four
    # stopped closing. Another one thought as far as the answer after 24 steps, with an accuracy of
    # 1.0, and less far after 60, with 0.7.
    return Method(
        sampler=EarlyExits(num_exits, think_end=think_end),
        advantage=chain(DecayingReward(), Center()),
    )


@component
class DecayingReward:
    """x / 2^(n - 1) for the n-th correct rollout of the group, ordered by "exit_index".

    A rollout is correct where its reward is above 0.

    >>> import torch
    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0, 0], reward_terms={"exit_index": [0.0, 1.0, 2.0]})
    >>> DecayingReward()(torch.tensor([1.0, 0.0, 1.0]), batch).tolist()
    [1.0, 0.0, 0.5]
    """

    requires = Requires(reward_terms=("exit_index",))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        index = batch.reward_terms["exit_index"]
        group = batch.group
        earlier = (group[:, None] == group) & (index[:, None] >= index)
        n = (earlier & (x > 0)).sum(1).clamp(min=1)
        return x / 2.0 ** (n - 1)


PAPER = Paper(
    title="S-GRPO: Early Exit via Reinforcement Learning in Reasoning Models",
    use="Reasoning continues long after the answer is known.",
    tags=("length", "reward"),
    checked=("golden", "properties"),
    catalogue=("s-grpo-early-exit",),
    source=Source(
        "third_party",
        "a public note on the poster (reward 1 / 2^(n - 1), 8 positions), reviews, and a public"
        " analysis of arXiv:2505.07686v2 (A, eq. 2, uniform cuts, the instruction)",
    ),
    plan="the note: generation and training batch of 128 x 8 alike: one update per step",
    deviations=(
        "A is not divided by the std and there is no KL divergence, as the analysis reports; the"
        " note has only: as in GRPO. The clip of 0.2 is our choice.",
        (
            "The note has 8 positions beside the whole path; that the path is one of 8 rollouts is "
            "our choice. The instruction is that of the analysis, between other line breaks."
        ),
        "The analysis trains the forced end of thinking and the answer; here the thinking before"
        " the exit is trained, and the forced end is not.",
    ),
    audit="exits, reward and group compared with public reviews of the paper",
    shown=(
        "tests/methods/test_toys.py::test_thoughts_shorten_to_answer_position_more_than_with_grpo",
        "tests/methods/test_toys.py"
        "::test_thoughts_trained_longer_with_s_grpo_end_before_the_answer",
    ),
)
