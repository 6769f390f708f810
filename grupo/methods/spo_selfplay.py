"""Self-Play PO: the reward is the win rate in the group. Swamy et al., 2024, arXiv:2401.04056."""

from collections.abc import Callable, Sequence
from itertools import permutations

from grupo.algo.advantages import Center, ScaleByStd, UseRewardTerm, chain
from grupo.algo.losses import Clip
from grupo.core.component import component
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.types import Rollout, Task
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def spo_selfplay(group_size: PositiveInt = 8, clip_eps: NonNegative = 0.2) -> Method:
    """A = (r - mean(r)) / std(r), r = fraction of the other rollouts that are beaten.

    Reward terms: "win_rate". No reward is learned.

    Args:
        group_size: rollouts per task (our choice).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (our choice).
    """
    advantage = chain(UseRewardTerm("win_rate"), Center(), ScaleByStd())
    return Method(
        sampler=GroupSampler(group_size), advantage=advantage, loss=Clip(clip_eps, clip_eps)
    )


def win_rates(win_probs: Sequence[Sequence[float]]) -> list[float]:
    """r_i = 1 / (G - 1) sum over j != i of P(i beats j); 1/2 in a group of one."""
    n = len(win_probs)
    wins = [sum(row) - row[i] for i, row in enumerate(win_probs)]
    return [total / (n - 1) if n > 1 else 0.5 for total in wins]


@component
class PreferenceWinRate:
    """Reward: the fraction of its group that a rollout beats.

    Both orders of a pair are compared and averaged, so that P(i beats j) + P(j beats i) = 1.

    Args:
        preference_fn: (task, i, j) -> probability that rollout i is better than j.
    """

    preference_fn: Callable[[Task, Rollout, Rollout], float]

    def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> list[float]:
        n = range(len(rollouts))
        prob = {p: self.preference_fn(task, *(rollouts[i] for i in p)) for p in permutations(n, 2)}
        mean = [[(prob[i, j] + 1 - prob[j, i]) / 2 if i != j else 0.5 for j in n] for i in n]
        return win_rates(mean)


PAPER = Paper(
    title="A Minimaximalist Approach to Reinforcement Learning from Human Feedback",
    use="Rollouts can be compared but not scored, and preferences may be cyclic.",
    tags=("preferences", "self-play"),
    checked=("golden", "properties", "run"),
    catalogue=("spo-selfplay",),
    source=Source("abstract", "the abstract, and the authors' page gokul.dev/spo: the reward"),
    plan="not stated in any source that was opened; one update per step",
    missing=(
        (
            "The queue of 10 to 100 past rollouts as opponents of the control tasks: here the "
            "group alone."
        ),
    ),
    deviations=(
        (
            "The paper leaves the policy optimiser open (its runs are PPO and SAC): the "
            "group-relative advantage, the clip and the mean over tokens are our choice."
        ),
    ),
    audit=(
        "the reward, a proportion of wins, compared with the abstract and the authors' page; the "
        "full paper could not be opened"
    ),
)
