"""Preference functions of several judges: a jury that votes, and a debate.

A preference function `compare(task, first, second)` returns 1 if the first rollout wins, 0 if it
loses and 1/2 for a tie; a single judge is one. `PairwiseWinRate(Jury(…))` is a reward, and with it
`best_against_worst` makes pairs of what the jury prefers.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from grupo.core.component import check_field, component
from grupo.core.ranges import PositiveInt
from grupo.core.types import Rollout, Task
from grupo.rewards.noisy_preferences import Compare

Combine = Callable[[Sequence[float]], float]


def majority(votes: Sequence[float]) -> float:
    """1 if more votes are above 1/2 than below, 0 if more are below, else 1/2.

    >>> majority([1.0, 0.0, 1.0]), majority([0.0, 0.5]), majority([1.0, 0.0])
    (1.0, 0.0, 0.5)
    """
    balance = sum((vote > 0.5) - (vote < 0.5) for vote in votes)
    return 0.5 + 0.5 * ((balance > 0) - (balance < 0))


@component
class Jury:
    """The joint vote of several judges on a pair of rollouts.

    LLMs-as-a-Jury in The Fellowship of the LLMs, Arif et al. (arXiv:2408.08688).

    Args:
        judges: Preference functions, at least one.
        combine: From the judges' votes to one: `majority`, or `statistics.fmean`.

    >>> def longer(task, first, second):
    ...     return float(first.length > second.length)
    >>> Jury((longer,))(Task("k", "?"), Rollout(), Rollout())
    0.0
    """

    judges: tuple[Compare, ...]
    combine: Combine = majority

    def __post_init__(self) -> None:
        check_field(self, "judges", bool(self.judges), "one judge or more")

    def __call__(self, task: Task, first: Rollout, second: Rollout) -> float:
        return self.combine([judge(task, first, second) for judge in self.judges])


class Statement(NamedTuple):
    """The statement of a debater: its vote, as of a preference function, and its argument."""

    vote: float
    argument: str = ""


# from a task, both rollouts and all statements so far, in order, to the debater's own statement
Debater = Callable[[Task, Rollout, Rollout, Sequence[Statement]], Statement]


@component
class Debate:
    """The joint vote of debaters who speak in turn, each with all statements before it.

    The last statement of each debater counts. A debate ends after `rounds` rounds, or after a round
    in which all votes are the same.

    LLM Debate in The Fellowship of the LLMs, Arif et al. (arXiv:2408.08688).

    Args:
        debaters: Functions of the task, both rollouts and the statements so far; at least one.
        rounds: Most rounds, in each of which every debater speaks once.
        combine: From the debaters' last votes to one: `majority`, or `statistics.fmean`.
    """

    debaters: tuple[Debater, ...]
    rounds: PositiveInt = 2
    combine: Combine = majority

    def __post_init__(self) -> None:
        check_field(self, "debaters", bool(self.debaters), "one debater or more")

    def __call__(self, task: Task, first: Rollout, second: Rollout) -> float:
        statements: list[Statement] = []
        votes: list[float] = []
        for _ in range(self.rounds):
            for debater in self.debaters:
                statements.append(debater(task, first, second, tuple(statements)))
            votes = [statement.vote for statement in statements[-len(self.debaters) :]]
            if len(set(votes)) == 1:
                break
        return self.combine(votes)
