"""S-GRPO: the first right exit from one thought earns most. Dai et al., 2025, arXiv:2505.07686."""

from torch import Tensor

from grupo.algo.advantages import Center, chain
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import EarlyExits

PAPER = Paper(
    title="S-GRPO: Early Exit via Reinforcement Learning in Reasoning Models",
    use="Thoughts go on long after the answer is known.",
    checked=("golden", "laws"),
    catalogue=("s-grpo-early-exit",),
)


@component
class DecayingReward:
    """x / 2^(n - 1) for the n-th of the group that is right, by its place `exit`.

    Who is right has a reward above 0.

    >>> import torch
    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0, 0], reward_terms={"exit_index": [0.0, 1.0, 2.0]})
    >>> DecayingReward()(torch.tensor([1.0, 0.0, 1.0]), batch).tolist()
    [1.0, 0.0, 0.5]
    """

    required_reward_terms = ("exit_index",)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        place, group = batch.reward_terms["exit_index"], batch.group
        earlier = (group[:, None] == group) & (place[:, None] >= place)
        n = (earlier & (x > 0)).sum(1).clamp(min=1)
        return x / 2.0 ** (n - 1)


def s_grpo(num_exits: int = 7, think_end: str = "</think>") -> Method:
    """r = 1, 1/2, 1/4 ... for the first, second, third right one of `num_exits` early exits and the
    whole path; A = r - mean(r).

    The instruction to answer, and the `think_end` forced with it, are only read.
    """
    # 8 to a question in the paper; that the whole path is one of them is our choice, and so are the
    # words of the instruction. A is as we know it from memory; a public note says "as in GRPO":
    # .replace(advantage=chain(Decaying(), Center(), ScaleByStd())).
    # Where only the whole path is right, means over rows push down the beginning that all share:
    # wrong exits are short. Where all are right the late are pushed down, and as the forced close
    # is not learned nothing takes their place: trained on, one toy of four forgot to close.
    return Method(
        sampler=EarlyExits(num_exits, think_end=think_end),
        advantage=chain(DecayingReward(), Center()),
    )
