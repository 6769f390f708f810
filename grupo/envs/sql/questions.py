"""The environment of questions about a SQLite database: one query is the answer."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from grupo.core.component import component, walk
from grupo.core.prompt_text import append_text, prepend_text
from grupo.core.ranges import FiniteSeconds
from grupo.core.types import Observation, RewardResult, Rollout, Task
from grupo.envs.on_failure import FailureHandler, drop_rollout
from grupo.envs.reward_term import RewardTerm
from grupo.envs.scoring import apply_failure_handler, score_rollouts
from grupo.envs.sql.check import DATABASE_COLUMN, QueryCheck, task_database
from grupo.envs.sql.database import database_at, schema_digest, schema_of
from grupo.envs.sql.reasoning_sql import partial_credit
from grupo.util.errors import ConfigError

SCHEMA_COLUMN = "schema"  # of a task: the digest of the schema that the task was made for
PLACEHOLDER = "{schema}"


@component
class SqlQuestions:
    """The schema and the task's question, one query as the answer, scored by reward terms.

    A task's reference answer is a query. The column `schema`, if a task has it, is the digest of
    the schema that the task was made for (`grupo.envs.sql.schema_digest`): another schema fails the
    rollout, and is refused before the run.

    Args:
        path: The database; or a folder, of which the column `database` of a task names a file. No
            path that leads out of the folder is opened.
        rewards: The reward terms, at least one, with distinct names. Each task that they get has
            the file of its database in the column `database`.
        introduction: The text before the question, in which {schema} is the schema.
        instructions: The text after the question.
        time_limit: Seconds that one call of a reward function may take; judges have their own.
        on_failure: Decides the result of a failed rollout: `drop_rollout`, `raise_error` or a
            `FallbackReward`.
    """

    path: str
    rewards: tuple[RewardTerm, ...] = partial_credit()
    introduction: str = "{schema}\n"
    instructions: str = "\nAnswer with one SQLite query."
    time_limit: FiniteSeconds = 10.0
    on_failure: FailureHandler = drop_rollout

    def __post_init__(self) -> None:
        names = [term.name for term in self.rewards]
        if not names or len(set(names)) < len(names):
            raise ConfigError(f"rewards: named {names}. Allowed: at least one, no name twice.")

    def check(self) -> None:
        """Raises `ConfigError` if `path` is neither a readable database nor a folder."""
        if not Path(self.path).is_dir():
            schema_of(database_at(self.path))

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        if rollout.turns:
            return None
        try:
            schema = schema_of(task_database(self._located(task)))
        except ConfigError:  # of a database that was lost in the run: `score` reports it
            return task.prompt
        introduction = self.introduction.replace(PLACEHOLDER, schema)
        return append_text(prepend_text(introduction, task.prompt), self.instructions)

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        try:
            located = self._located(task)
        except ConfigError as error:
            results = [RewardResult(error=str(error))] * len(rollouts)
        else:
            results = await score_rollouts(self.rewards, located, rollouts, self.time_limit)
        return apply_failure_handler(task, results, self.on_failure)

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task whose database or reference query cannot be used."""
        checkers = {part for part in walk(self.rewards) if isinstance(part, QueryCheck)}
        for task in tasks:
            located = self._located(task)
            schema_of(task_database(located))  # refuses a file that is no database
            for checker in sorted(checkers, key=repr):
                checker.check_reference(located)

    def _located(self, task: Task) -> Task:
        """The task with the file of its database, whose schema is that of the task."""
        path = self.path
        if Path(path).is_dir():
            path = _file_in(path, task)
        located = replace(task, columns={**task.columns, DATABASE_COLUMN: path})
        expected = task.columns.get(SCHEMA_COLUMN)
        if expected is not None and expected != schema_digest(task_database(located)):
            raise ConfigError(
                f"tasks: {task.location or task.key}: the schema of {path!r} has changed since the"
                f" task was made: its digest is {schema_digest(task_database(located))}, and that"
                f" of the task {str(expected)[:40]!r}. Make the tasks again."
            )
        return located


def _file_in(folder: str, task: Task) -> str:
    """The file in the folder that the task names; `ConfigError` if it leads to another place."""
    name = task.columns.get(DATABASE_COLUMN)
    if not isinstance(name, str) or "\0" in name:
        raise ConfigError(
            f"tasks: {task.location or task.key}: column {DATABASE_COLUMN!r} is {str(name)[:80]!r}."
            f" Allowed: the name of a file in {folder!r}."
        )
    path = Path(folder) / name
    if not path.resolve().is_relative_to(Path(folder).resolve()):
        raise ConfigError(
            f"tasks: {task.location or task.key}: column {DATABASE_COLUMN!r} is {name[:80]!r},"
            f" which is not in {folder!r}. Allowed: the name of a file in this folder."
        )
    return str(path)
