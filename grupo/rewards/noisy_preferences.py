"""Simulated annotators: a pool of judges whose labels are wrong at a known rate. AlpacaFarm.

`PairwiseWinRate(NoisyPreferences(…))` is a reward; `win_rate` measures without noise.
"""

from collections.abc import Callable, Sequence
from random import Random
from statistics import fmean

from grupo.core.component import component
from grupo.core.paper import Paper, Source
from grupo.core.ranges import Probability
from grupo.core.types import Rollout, Task
from grupo.util.errors import ConfigError
from grupo.util.rng import make_rng

Compare = Callable[[Task, Rollout, Rollout], float]


@component
class NoisyPreferences:
    """A comparison by one judge of a pool, whose label is flipped at a fixed rate.

    The judge, the order in which it reads the answers and the flip are drawn from the seed, the
    task and the two answers, so that the same seed gives the same labels.

    Args:
        judges: The pool: each `judge(task, first, second)` returns 1 if the first rollout wins, 0
            if it loses, and 1/2 for a tie.
        flip: Probability that the label is the opposite one (the paper's training labels: 0.25).
        seed: Selects other draws.

    >>> from grupo.core.types import Response
    >>> short, long = (Rollout((("?", Response((5,) * n, (-1.0,) * n)),)) for n in (1, 2))
    >>> def longer(task, first, second):
    ...     return float(first.length > second.length)
    >>> NoisyPreferences((longer,), flip=1.0)(Task("k", "?"), short, long)
    1.0
    """

    judges: tuple[Compare, ...]
    flip: Probability = 0.25
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.judges:
            raise ConfigError("NoisyPreferences.judges: (). Allowed: one judge or more.")

    def __call__(self, task: Task, first: Rollout, second: Rollout) -> float:
        rng = pair_rng(self.seed, task, first, second)
        judge = self.judges[rng.randrange(len(self.judges))]
        keys = answer_key(first), answer_key(second)
        swapped = (keys[0] > keys[1]) != (rng.random() < 0.5)
        win = 1 - judge(task, second, first) if swapped else judge(task, first, second)
        return 1 - win if rng.random() < self.flip else win


def answer_key(rollout: Rollout) -> tuple:
    """Random streams and items of the responses: rollouts with equal keys are the same answer."""
    return tuple((response.rng_key, response.items) for _, response in rollout.turns)


def pair_rng(seed: int, task: Task, first: Rollout, second: Rollout) -> Random:
    """The random numbers of a comparison, the same for both orders of the rollouts."""
    return make_rng(seed, "preference", task.key, *sorted((answer_key(first), answer_key(second))))


def win_rate(
    compare: Compare, task: Task, rollouts: Sequence[Rollout], others: Sequence[Rollout]
) -> float:
    """Fraction of all pairs in which a rollout beats one of the others; a tie counts 1/2.

    Args:
        compare: The judge, without flips in an evaluation.
        task: The task of all rollouts.
        rollouts: Rollouts of the policy, at least one.
        others: Rollouts of the policy that it is compared with, at least one.
    """
    return fmean(compare(task, first, second) for first in rollouts for second in others)


PAPER = Paper(
    title="AlpacaFarm: A Simulation Framework for Methods that Learn from Human Feedback",
    kind="environment",
    use="Methods that learn from preferences are compared before people label any pair.",
    tags=("preferences",),
    catalogue=("alpacafarm",),
    source=Source("memory", "the catalogue's account of the simulated annotators"),
    checked=("golden", "run"),
    missing=(
        "The prompts of its judges: any judges that compare two answers form the pool.",
        "Quark and FeedME, which are not among the methods of the table.",
    ),
    deviations=(
        "The same two answers to a task have the same label in either order, and when asked again.",
        "A tie is not flipped.",
    ),
    shown=("docs/comparisons/preferences.md#ten-methods-under-a-noisy-and-under-the-true-judge",),
)
