"""Tasks chosen by how their rollouts fared before."""

from collections.abc import Sequence

from grupo.core.batch import Past
from grupo.core.component import piece
from grupo.core.rng import generator
from grupo.core.types import Task
from grupo.rollouts.curricula.base import Ask


@piece
class Undecided:
    """Tasks without replacement, in proportion to sqrt(v (1 - v)) + 0.05; asked once a step.

    v is `tracked`. Single-stream PO (arXiv:2509.13232).
    """

    forget: float

    def __call__(self, ask: Ask) -> Sequence[Task]:
        rng = generator(ask.seed, "undecided", ask.history.asked)
        v = [tracked(ask.history.of(task), self.forget) for task in ask.tasks]
        keys = [rng.random() ** (1 / (max(p * (1 - p), 0.0) ** 0.5 + 0.05)) for p in v]
        order = sorted(range(len(keys)), key=lambda i: -keys[i])
        return [] if ask.round else [ask.tasks[i] for i in order[: ask.wanted]]


@piece
class Thompson:
    """The most promising of `pool` times as many tasks, by a draw from what is known of each.

    p ~ Beta(a + 1, b + 1), a and b `counted`, promises p (1 - p)^2; asked once a step. VADE, Hu et
    al. (arXiv:2511.18902).
    """

    forget: float = 0.9
    fade: float = 0.999
    pool: int = 16
    right: float = 0.5

    def __call__(self, ask: Ask) -> Sequence[Task]:
        rng, count = generator(ask.seed, "thompson", ask.history.asked), len(ask.tasks)
        some = rng.sample(range(count), min(count, self.pool * ask.wanted))
        known = (self.counted(ask.history.of(ask.tasks[i]), ask.history.steps) for i in some)
        promise = [promised(rng.betavariate(a + 1, b + 1)) for a, b in known]
        order = sorted(range(len(some)), key=lambda k: -promise[k])
        return [] if ask.round else [ask.tasks[some[k]] for k in order[: ask.wanted]]

    def counted(self, past: Past, step: int) -> tuple[float, float]:
        """Rollouts right and wrong; a group makes older ones count `forget`, each step `fade`."""
        a = b = 0.0
        later = [*past.steps, step][1:]
        for began, ended, rewards in zip(past.steps, later, past.rewards, strict=True):
            s = sum(r > self.right for r in rewards)
            kept = self.fade ** (ended - began)
            a, b = kept * (self.forget * a + s), kept * (self.forget * b + len(rewards) - s)
        return a, b


def tracked(past: Past, forget: float) -> float:
    """al / (al + be), born as 1/2 each; a reward makes them forget al + r and forget be + 1 - r.

    The mean of a Beta that follows how often a task is solved, rewards in [0, 1].

    >>> tracked(Past((0,), ((1.0,),)), forget=0.5)
    0.8333333333333334
    """
    al = be = 0.5
    for r in (reward for rewards in past.rewards for reward in rewards):
        al, be = forget * al + r, forget * be + 1 - r
    return al / (al + be)


def promised(p: float) -> float:
    """p (1 - p)^2: what a task solved at rate p has to teach, most at 1/3.

    >>> promised(0.5), round(promised(1 / 3), 4)
    (0.125, 0.1481)
    """
    return p * (1 - p) ** 2
