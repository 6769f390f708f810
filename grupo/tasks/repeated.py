"""The first tasks of a source, each many times: training on one example or a few."""

from collections.abc import Sequence

from grupo.core.component import component
from grupo.core.paper import Paper, Source
from grupo.core.ranges import PositiveInt
from grupo.core.types import Task
from grupo.tasks.base import LazyTasks, TaskSource
from grupo.tasks.in_memory import as_task_source


@component
class Repeated:
    """All tasks of a source, `times` times over; each copy is a group of its own.

    With a source of one task, a step's prompts are all the same: One-Shot RLVR, Wang et al.
    (arXiv:2504.20571), with 128 copies. `Selected(tasks, survey, Highest("history_std", 1))` is the
    task whose accuracy varied most in a preliminary run (`grupo survey RUN --history`).

    Args:
        source: The source, or a table in memory.
        times: Copies of each task.
    """

    source: TaskSource
    times: PositiveInt = 128

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", as_task_source(self.source, "source"))

    def load(self) -> Sequence[Task]:
        tasks = self.source.load()
        return LazyTasks(self.times * len(tasks), lambda i: tasks[i % len(tasks)])


PAPER = Paper(
    title="Reinforcement Learning for Reasoning in Large Language Models with One Training Example",
    kind="curriculum",
    use="There are only a few tasks that can be verified.",
    tags=("curriculum", "entropy", "kl"),
    catalogue=("one-shot-rlvr",),
    source=Source(
        "code",
        "ypwang61/One-Shot-RLVR, scripts/train/training_1.5b_pi1_r128.sh and"
        " data/data_selection.sh, as the catalogue cites them",
    ),
    checked=("golden",),
    deviations=("The history has one accuracy per visit of a task, not one per epoch: the same.",),
    shown=("docs/small_claims.md#one-training-example",),
)
