"""The tasks of a taskset of verifiers."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from grupo.core.component import component
from grupo.core.ranges import NonNegativeInt
from grupo.core.types import Message, Task
from grupo.envs.tasksets.agent import TasksetAgent
from grupo.envs.tasksets.loading import import_tasksets
from grupo.tasks.base import LazyTasks, task_key
from grupo.tasks.tables import check_row_count
from grupo.util.errors import ConfigError
from grupo.util.limits import TASK_ROWS
from grupo.util.loader_errors import loader_errors


@component
class TasksetTasks:
    """The tasks of a taskset of verifiers.

    Args:
        agent: The agent that plays them.
        limit: Number of tasks that are taken, from the first; 0 takes all.
    """

    agent: TasksetAgent
    limit: NonNegativeInt = 0

    def load(self) -> Sequence[Task]:
        """The tasks; the reference answer is the field `answer` of their data, if they have it."""
        name = self.agent.taskset_id
        with loader_errors(f"tasks: {name}"):
            taskset = import_tasksets().load_taskset(self.agent.taskset_config)
            if taskset.INFINITE and not self.limit:
                raise ConfigError(f"limit: 0, and {name!r} has no end. Allowed: 1 and more.")
            most = TASK_ROWS.maximum + 1
            rows = [task.data for task in islice(taskset, min(self.limit or most, most))]
            check_row_count(name, len(rows))
        if not rows:
            raise ConfigError(f"tasks: {name!r} has no task.")
        return LazyTasks(len(rows), lambda index: _make_task(rows[index], name))


def _make_task(data: Any, source: str) -> Task:
    row = data.model_dump(mode="json")
    prompt = _messages(row, source)
    return Task(task_key(prompt), prompt, row.get("answer"), source, {"taskset_data": row})


def _messages(row: dict[str, Any], source: str) -> tuple[Message, ...]:
    """The messages with which an agent begins, apart from those that its harness adds."""
    system, prompt = row["system_prompt"], row["prompt"]
    if prompt is None:
        raise ConfigError(f"tasks: {source!r} has a task without a prompt. Allowed: with prompts.")
    begin = [{"role": "system", "content": system}] if system else []
    rest = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    return (*begin, *rest)
