"""ArenaRL: a knock-out tournament ranks the group. Zhang et al., 2026, arXiv:2601.06487."""

from grupo.algo.advantages import Center, ScaleByStd, UseRewardTerm, chain
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def arenarl(
    group_size: PositiveInt = 16, clip_low: NonNegative = 0.2, clip_high: NonNegative = 0.28
) -> Method:
    """A = (r - mean(r)) / std(r) with r = 1 - place / (G - 1), the reward term "rank".

    `grupo.rewards.pairwise.tournament_scores` computes it with 2 G - 2 comparisons by a judge.

    A step makes 6 updates, one on each of 6 minibatches.

    Args:
        group_size: G, rollouts per task.
        clip_low: ratios are at least 1 - clip_low.
        clip_high: ratios are at most 1 + clip_high.
    """
    advantage = chain(UseRewardTerm("rank"), Center(), ScaleByStd())
    return Method(
        sampler=GroupSampler(group_size),
        advantage=advantage,
        loss=Clip(clip_low, clip_high),
        updates=Updates(minibatches=6),
    )


PAPER = Paper(
    title="ArenaRL: Scaling RL for Open-Ended Agents via Tournament-based Relative Ranking",
    use="Answers are open-ended, and a judge compares two answers better than it scores one.",
    tags=("preferences", "reward", "agents"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("arenarl",),
    source=Source(
        "code",
        "Alibaba-NLP/qqr, qqr/reward_models/arena/single_elimination.py and "
        "scripts/travel/run-qwen3-8B.sh",
    ),
    plan=(
        "scripts/travel/run-qwen3-8B.sh: 16 tasks of 16 rollouts, each padded to 6 rows, and a "
        "global batch of 256 rows: 6 updates per step"
    ),
    missing=(
        "The other forms of the release: anchor only, round robin, Swiss and double elimination; "
        "the configurations of both tasks have anchor only.",
        "The greedy first rollout of a group, against which the others are seeded.",
        "The temperature of 0.8 at which the script samples.",
    ),
    deviations=(
        (
            "Where G is no power of two the best seeds have a bye; the release pairs neighbours "
            "instead."
        ),
        "In the release each turn is a row, and the empty rows of the padding count in the mean.",
        "A minibatch holds whole groups; the release cuts through groups.",
    ),
    audit=(
        "tournament, reward, clips, group and batch sizes compared with single_elimination.py and "
        "the run script, rows and the greedy rollout with examples/travel/rollout.py and "
        "rollout/agent_rollout.py"
    ),
)
