"""Tasks chosen by how their rollouts fared before."""

from collections.abc import Sequence

from grupo.core.batch import TaskHistory
from grupo.core.component import component
from grupo.core.rng import make_rng
from grupo.core.types import Task
from grupo.rollouts.curricula.base import CurriculumRequest


@component
class UncertaintyWeighted:
    """Tasks without replacement, in proportion to sqrt(v (1 - v)) + 0.05; asked once a step.

    v is `tracked`. Single-stream PO (arXiv:2509.13232).
    """

    decay: float

    def __call__(self, request: CurriculumRequest) -> Sequence[Task]:
        rng = make_rng(request.seed, "undecided", request.history.tasks_drawn)
        v = [beta_mean(request.history.task_history(task), self.decay) for task in request.tasks]
        keys = [rng.random() ** (1 / (max(p * (1 - p), 0.0) ** 0.5 + 0.05)) for p in v]
        order = sorted(range(len(keys)), key=lambda i: -keys[i])
        return (
            [] if request.resample_round else [request.tasks[i] for i in order[: request.num_tasks]]
        )


@component
class Thompson:
    """The most promising of `pool` times as many tasks, by a draw from what is known of each.

    p ~ Beta(a + 1, b + 1), a and b `beta_counts`, promises p (1 - p)^2; asked once a step. VADE, Hu et
    al. (arXiv:2511.18902).
    """

    decay_per_group: float = 0.9
    decay_per_step: float = 0.999
    pool_factor: int = 16
    success_threshold: float = 0.5

    def __call__(self, request: CurriculumRequest) -> Sequence[Task]:
        rng, count = (
            make_rng(request.seed, "thompson", request.history.tasks_drawn),
            len(request.tasks),
        )
        some = rng.sample(range(count), min(count, self.pool_factor * request.num_tasks))
        known = (
            self.beta_counts(
                request.history.task_history(request.tasks[i]), request.history.num_steps
            )
            for i in some
        )
        promise = [expected_gain(rng.betavariate(a + 1, b + 1)) for a, b in known]
        order = sorted(range(len(some)), key=lambda k: -promise[k])
        return (
            []
            if request.resample_round
            else [request.tasks[some[k]] for k in order[: request.num_tasks]]
        )

    def beta_counts(self, history: TaskHistory, step: int) -> tuple[float, float]:
        """Rollouts right and wrong; a group makes older ones count `forget`, each step `decay_per_step`."""
        a = b = 0.0
        later = [*history.steps, step][1:]
        for began, ended, rewards in zip(history.steps, later, history.rewards, strict=True):
            s = sum(r > self.success_threshold for r in rewards)
            kept = self.decay_per_step ** (ended - began)
            a, b = (
                kept * (self.decay_per_group * a + s),
                kept * (self.decay_per_group * b + len(rewards) - s),
            )
        return a, b


def beta_mean(history: TaskHistory, decay: float) -> float:
    """al / (al + be), born as 1/2 each; a reward makes them forget al + r and forget be + 1 - r.

    The mean of a Beta that follows how often a task is solved, rewards in [0, 1].

    >>> beta_mean(TaskHistory((0,), ((1.0,),)), decay=0.5)
    0.8333333333333334
    """
    al = be = 0.5
    for r in (reward for rewards in history.rewards for reward in rewards):
        al, be = decay * al + r, decay * be + 1 - r
    return al / (al + be)


def expected_gain(success_rate: float) -> float:
    """p (1 - p)^2: what a task solved at rate p has to teach, most at 1/3.

    >>> expected_gain(0.5), round(expected_gain(1 / 3), 4)
    (0.125, 0.1481)
    """
    return success_rate * (1 - success_rate) ** 2
