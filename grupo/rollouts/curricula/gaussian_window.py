"""A Gaussian window that slides along the tasks, sorted by a column."""

from collections.abc import Sequence
from math import isfinite, log

from grupo.core.component import component
from grupo.core.controllers import ExponentialSum
from grupo.core.numbers import NumberOrSchedule, Positive
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.core.types import Task
from grupo.rollouts.curricula.base import CurriculumRequest
from grupo.util.errors import ConfigError
from grupo.util.rng import make_rng


@component
class GaussianWindow:
    """Samples tasks without replacement, most of them near the center of a window.

    Tasks are sorted by a column, the largest value first. The task at place i of this order has the
    weight exp(-(i - center)^2 / (2 width^2)). Only the first request of a step returns tasks.

    GAIN-RL, Wang et al. (arXiv:2506.02281). There, `PromptConcentration` computes the column, and
    the advantage estimator contains `WindowShift`, which measures a shift in each step. The center
    is the sum of these shifts.

    Args:
        column: Column of the tasks by which they are sorted.
        center: Place of the center in the sorted tasks, from 0.
        width: Standard deviation of the window, in tasks.

    Raises:
        ConfigError: A task has no number in the column. Raised before the run.
    """

    column: str = "concentration"
    center: NumberOrSchedule = ExponentialSum("curriculum/shift", decay=1.0)
    width: Positive = 1000.0

    @property
    def requires(self) -> Requires:
        return Requires(columns=(self.column,))

    def validate_every_task(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task without a number in the column."""
        for task in tasks:
            value = task.columns.get(self.column)
            if not isinstance(value, int | float) or not isfinite(value):
                raise ConfigError(
                    f"tasks: {task.location or task.key} has {value!r} in the column"
                    f" {self.column!r}, by which GaussianWindow sorts. Allowed: a finite number."
                )

    def __call__(self, request: CurriculumRequest) -> Sequence[Task]:
        if request.round_index:
            return []
        assert isinstance(self.center, int | float)
        assert isinstance(self.width, int | float)
        # indices are sorted, not tasks: tasks that are read from a file would all stay in memory
        values = [task.columns[self.column] for task in request.tasks]
        sorted_indices = sorted(range(len(values)), key=lambda index: -values[index])
        rng = make_rng(request.seed, "gaussian-window", request.history.num_tasks_drawn)
        # the tasks with the largest log weight + Gumbel noise are a sample without replacement;
        # 0.5 takes the place of the random number 0.0, which has no logarithm
        noisy_log_weights = [
            -0.5 * ((i - self.center) / self.width) ** 2 - log(-log(rng.random() or 0.5))
            for i in range(len(values))
        ]
        places = sorted(range(len(values)), key=lambda i: -noisy_log_weights[i])
        return [request.tasks[sorted_indices[i]] for i in places[: request.num_tasks]]


PAPER = Paper(
    title="Angles Don't Lie: Unlocking Training-Efficient RL Through the Model's Own Signals",
    use="Tasks differ in difficulty, and no survey has measured how often each of them is solved.",
    tags=("curriculum",),
    kind="curriculum",
    checked=("golden", "run"),
    catalogue=("gain-rl",),
    source=Source(
        "code",
        "wangqinsi1/GAINRL: data_processor.py, and a copy of verl_gainrl's gainrl_sampler.py in"
        " another repository",
    ),
    missing=(
        "New scores during training: the policy before the first step scores each task once.",
    ),
    deviations=(
        "Cosines are those of the last hidden states; the release reads the input of the last"
        " layer's MLP.",
        "Means are over the pairs of two different tokens; the release divides by the number of all"
        " ordered pairs, and finds the question at fixed positions of its prompt.",
        "The two cosines of a prompt have equal weight, as in the paper; the release weighs the"
        " second one by 8.",
        "The reward is 0 or 1; the release halves a reward of up to 2.",
    ),
    shown=(
        "tests/rollouts/curricula/test_gaussian_window.py::test_the_window_moves_by_accuracy_and_concentration",
        "docs/guidance_shown/task_choice.md#results",
    ),
)
