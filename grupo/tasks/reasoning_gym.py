"""Tasks that reasoning-gym generates, each with a verifier."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from grupo.core.component import component
from grupo.core.types import Task
from grupo.tasks.base import LazyTasks, task_key
from grupo.util.errors import ConfigError, suggest
from grupo.util.limits import GENERATED_TASKS, GYM_SETTING
from grupo.util.loader_errors import loader_errors

GymSettings = tuple[tuple[str, Any], ...]


@component
class ReasoningGym:
    """Tasks of a reasoning-gym family, each generated when it is indexed.

    Most families draw task i of seed s from s + i, so neighbouring seeds share almost all tasks.
    Hold tasks out with `split_tasks`, which compares contents, rather than with another seed.

    Args:
        family: The family's name in reasoning-gym.
        size: Number of tasks.
        seed: The data set's seed.
        settings: Pairs of a setting of the family and its value.
        template: The prompt, with `{question}` as the place of the question.

    >>> tasks = ReasoningGym("chain_sum", size=2, settings=(("max_terms", 2),)).load()
    >>> tasks[0].reference_answer
    '-3579'
    """

    family: str
    size: int = 10_000
    seed: int = 0
    settings: GymSettings = ()
    template: str = "{question}"

    def __post_init__(self) -> None:
        if "{question}" not in self.template:
            raise ConfigError(
                f"template: {self.template!r} has no {{question}}. Allowed: a text with it."
            )
        self._dataset()

    def load(self) -> Sequence[Task]:
        dataset = self._dataset()

        def make_task(index: int) -> Task:
            with loader_errors(f"{self.family}, task {index}"):
                return self._task(dataset[index])

        return LazyTasks(self.size, make_task)

    def _dataset(self) -> Any:
        settings = (("size", self.size), ("seed", self.seed), *self.settings)
        return create_gym_dataset(self.family, settings)

    def _task(self, entry: dict[str, Any]) -> Task:
        prompt = self.template.replace("{question}", entry["question"])
        columns = {"entry": entry, "settings": self.settings}
        return Task(task_key(prompt), prompt, entry["answer"], self.family, columns)


def create_gym_dataset(family: str, settings: GymSettings) -> Any:
    """reasoning-gym's data set; raises `ConfigError` for unknown families, settings and values."""
    import reasoning_gym.factory as gym  # imported on demand, because the import takes a second

    if family not in gym.DATASETS:
        raise ConfigError(
            f"reasoning-gym has no family {family!r}. {suggest(family, gym.DATASETS)}"
        )
    defaults = {f.name: f.default for f in fields(gym.DATASETS[family][1])}
    names = list(defaults)
    for name, value in settings:
        if name not in names:
            raise ConfigError(f"{family} has no setting {name!r}. {suggest(name, names)}")
        _check_setting(family, name, value, defaults[name])
    try:
        return gym.create_dataset(family, **dict(settings))
    except Exception as error:  # a configuration's own checks raise errors of any type
        raise ConfigError(f"{family} does not accept {dict(settings)}: {error}") from error


def _check_setting(family: str, name: str, value: Any, default: Any) -> None:
    """Raise `ConfigError` for a number of terms, digits … with which a task takes minutes."""
    if name == "seed" or not isinstance(value, int):
        return
    limit = GENERATED_TASKS if name == "size" else GYM_SETTING
    multiple = 1000 * default if isinstance(default, int) and name != "size" else 0
    if abs(value) > max(limit.maximum, multiple):
        raise ConfigError(f"{family}: {name} = {value}. Allowed: {limit.allowed}.")
