"""Self-Play PO: reward is the share of its group it beats. Swamy et al., 2024, arXiv:2401.04056."""

from collections.abc import Callable, Sequence
from itertools import permutations

from grupo.algo.advantages import Center, ScaleByStd, UseRewardTerm, chain
from grupo.algo.losses import Clip
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.core.types import Rollout, Task
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="A Minimaximalist Approach to Reinforcement Learning from Human Feedback",
    use="Rollouts can be compared but not scored, and preferences may go round in circles.",
    checked=("golden", "laws", "run"),
    catalogue=("spo-selfplay",),
)


def win_rates(win_probs: Sequence[Sequence[float]]) -> list[float]:
    """r_i = 1 / (G - 1) sum over j != i of P(i beats j); 1/2 for who has nobody to beat."""
    n = len(win_probs)
    wins = [sum(row) - row[i] for i, row in enumerate(win_probs)]
    return [won / (n - 1) if n > 1 else 0.5 for won in wins]


@component
class PreferenceWinRate:
    """A reward: the share of its group that a rollout beats, `prefers(task, i, j)` in 0..1.

    Both orders of a pair are asked and averaged, so that P(i beats j) + P(j beats i) = 1.
    """

    preference_fn: Callable[[Task, Rollout, Rollout], float]

    def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> list[float]:
        n = range(len(rollouts))
        said = {p: self.preference_fn(task, *(rollouts[i] for i in p)) for p in permutations(n, 2)}
        both = [[(said[i, j] + 1 - said[j, i]) / 2 if i != j else 0.5 for j in n] for i in n]
        return win_rates(both)


def spo_selfplay(group_size: int = 8, clip_eps: float = 0.2) -> Method:
    """r = reward_terms["win_rate"], the share of the other rollouts beaten, A = (r - mean(r)) / std(r).

    No reward is learned: a fixed point is a minimax winner of the preferences.
    """
    # The paper leaves the policy optimiser open (its runs are PPO and SAC) and keeps a queue of
    # 10 to 100 past rollouts as opponents in control tasks; group-relative credit is our choice,
    # and opponents are the group alone.
    credit = chain(UseRewardTerm("win_rate"), Center(), ScaleByStd())
    return Method(sampler=GroupSampler(group_size), advantage=credit, loss=Clip(clip_eps, clip_eps))
