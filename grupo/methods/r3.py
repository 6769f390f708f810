"""R3: old successes join groups that fail. Jiang et al., 2026, arXiv:2601.19620."""

from grupo.algo.advantages import Center, GroupedBy, ScaleByStd, chain
from grupo.algo.advantages.entropy_rank import EntropyRank
from grupo.algo.advantages.replay import ByPrompt, ScaleReplayed
from grupo.algo.filters import Replay
from grupo.algo.losses import KL, Clip
from grupo.core import group_ops
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithReflection

PAPER = Paper(
    title="R^3: Replay, Reflection, and Ranking Rewards for LLM Reinforcement Learning",
    use="Groups agree with themselves, tasks come back, and answers are cut off.",
    checked=("golden", "laws", "run"),
    example="r3(max_length=4)",
    catalogue=("r3-replay-reflect-rank",),
)


def r3(
    max_length: int,
    group_size: int = 8,
    num_replays: int = 1,
    replay_scale: float = 0.5,
    failure_threshold: float = 0.25,
    kl_coef: float = 0.001,
) -> Method:
    """GRPO whose groups stay mixed: `num_replays` right rollouts of the past join those all wrong.

    And wrong ones those all right. Of a task whose remembered rollouts earn less than `failure_threshold` on
    average a second group is drawn, to which one of them is shown. A = (r - mean(r)) / std(r) over
    old and new of a group, std divided by n, times `replay_scale` where old; r is that and
    `EntropyRank` for who was cut off at `max_length`. The ratio of an old rollout is against the
    policy that drew it, behind what it was shown. loss = clipped - A r + `kl_coef` KL.
    """
    # Remembered are a task's best and worst: it is reflected on until one was right. Where no right
    # rollout is remembered, ranks pay. alpha, below, kl, peak, best and the words that show the
    # failure are our choice: neither they nor where alpha stands were seen.
    ranked = chain(EntropyRank(max_length), Center(), ScaleByStd(std=group_ops.population_std))
    return Method(
        sampler=WithReflection(GroupSampler(group_size), failure_threshold),
        filter=Replay(num_replays),
        advantage=chain(GroupedBy(ranked, ByPrompt()), ScaleReplayed(replay_scale)),
        loss=Clip() + kl_coef * KL(),
    )
