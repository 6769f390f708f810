"""R3: past successes are replayed in failing groups. Jiang et al., 2026, arXiv:2601.19620."""

from grupo.algo.advantages import Center, GroupedBy, ScaleByStd, chain
from grupo.algo.advantages.entropy_rank import EntropyRank
from grupo.algo.advantages.replay import ByPrompt, ScaleMixedGroups
from grupo.algo.filters import Replay
from grupo.algo.losses import KL, Clip
from grupo.core.numbers import NonNegative, NumberOrSchedule, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithReflection


def r3(
    max_length: PositiveInt,
    group_size: PositiveInt = 8,
    num_replays: PositiveInt = 1,
    replay_std_scale: Positive = 2.0,
    failure_threshold: NumberOrSchedule = 0.25,
    kl_coef: NonNegative = 0.001,
) -> Method:
    """GRPO that keeps groups mixed by replaying past rollouts.

    num_replays correct past rollouts join groups without a success, wrong ones join solved groups.
    For a task whose remembered rollouts earn less than failure_threshold on average, a second group
    is sampled that sees one of them in the prompt. A = (r - mean(r)) / std(r) over new and old
    rollouts of a group, std(r) times replay_std_scale in a group with old ones (eq. 3); r includes
    `EntropyRank` for truncated rollouts where all new ones are wrong. The ratio of an old rollout
    is to the policy that sampled it. loss = -clipped ratio x A + kl_coef KL.

    Args:
        max_length: length limit of an answer, in tokens.
        group_size: rollouts per task.
        num_replays: replayed rollouts per group (our choice).
        replay_std_scale: factor of the standard deviation of groups with replayed rollouts (alpha
            in the paper) (our choice).
        failure_threshold: mean reward of remembered rollouts below which the task is reflected on
            (our choice).
        kl_coef: weight of the KL divergence from the reference policy (our choice).
    """
    # The best and worst rollouts of a task are remembered, and it is reflected on until one was
    # correct.
    estimator = chain(
        EntropyRank(max_length), Center(), ScaleByStd(), ScaleMixedGroups(replay_std_scale)
    )
    return Method(
        sampler=WithReflection(GroupSampler(group_size), failure_threshold),
        filter=Replay(num_replays),
        advantage=GroupedBy(estimator, ByPrompt()),
        loss=Clip() + kl_coef * KL(),
    )


PAPER = Paper(
    title="R^3: Replay, Reflection, and Ranking Rewards for LLM Reinforcement Learning",
    use="Groups have equal rewards, tasks recur, and answers are truncated.",
    tags=("off-policy", "hints"),
    checked=("golden", "properties", "run"),
    example="r3(max_length=4)",
    catalogue=("r3-replay-reflect-rank",),
    source=Source(
        "third_party",
        "eq. 1 to 3, algorithm 1 and sections 3.1 to 4.2 as public excerpts of arXiv:2601.19620v1 "
        "quote them",
    ),
    plan="not stated in any source that was opened; one update per step",
    missing=(
        "The reward of max(0, 1 - l / 32,768) for a correct answer of l tokens (section 4.1.3).",
    ),
    deviations=(
        (
            "The text that shows the failure and all constants are our choice: the sections that "
            "were opened state none but the 32,768."
        ),
        "Only the best and the worst rollout of a task are remembered, so that it is hard as long "
        "as it has no success; the paper keeps all and takes the mean of its history.",
        "The standard deviation is by n - 1: the paper does not define it.",
        "The ratio is that of a token, as in GRPO; eq. 2 writes that of the answer.",
        (
            "Replay is decided over the plain and the reflected group of a task together, so one "
            "success in the reflected group stops the replay of successes for the plain one."
        ),
        "alpha does not act in groups without a replayed rollout, which eq. 1 covers.",
    ),
    audit="algorithm 1, the ranks and the advantage of mixed groups compared with the excerpts",
    shown=(
        "tests/methods/test_toys.py"
        "::test_r3_trains_sooner_with_fewer_uninformative_groups_on_sparse_rewards",
    ),
)
