"""Tasks that reasoning-gym generates, as many as wanted, each with a verifier."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from grupo.core.component import component
from grupo.core.errors import ConfigError, suggest
from grupo.core.types import Task
from grupo.tasks.base import LazyTasks, task_key

GymSettings = tuple[tuple[str, Any], ...]


@component
class ReasoningGym:
    """`size` tasks of a reasoning-gym family, generated one by one when asked for.

    Task i of seed s is reasoning-gym's own: most families draw it from s + i, so that neighbouring
    seeds share almost all their tasks. To hold tasks out use `split`, which goes by content, rather
    than another seed.

    >>> ReasoningGym("chain_sum", size=2, settings=(("max_terms", 2),)).load()[0].answer
    '-3579'
    """

    family: str
    size: int = 10_000
    seed: int = 0
    settings: GymSettings = ()
    template: str = "{question}"  # what the policy reads

    def __post_init__(self) -> None:
        if "{question}" not in self.template:
            raise ConfigError(f"template: {self.template!r} does not say where {{question}} goes.")
        self._dataset()

    def load(self) -> Sequence[Task]:
        dataset = self._dataset()
        return LazyTasks(self.size, lambda i: self._task(dataset[i]))

    def _dataset(self) -> Any:
        given = (("size", self.size), ("seed", self.seed), *self.settings)
        return create_gym_dataset(self.family, given)

    def _task(self, entry: dict[str, Any]) -> Task:
        prompt = self.template.replace("{question}", entry["question"])
        columns = {"entry": entry, "settings": self.settings}
        return Task(task_key(prompt), prompt, entry["answer"], self.family, columns)


def create_gym_dataset(family: str, settings: GymSettings) -> Any:
    """reasoning-gym's own dataset; families, settings and values that it lacks are refused."""
    import reasoning_gym.factory as gym  # a second to import: only those who use it wait

    if family not in gym.DATASETS:
        raise ConfigError(
            f"reasoning-gym has no family {family!r}. {suggest(family, gym.DATASETS)}"
        )
    names = [f.name for f in fields(gym.DATASETS[family][1])]
    for name, _ in settings:
        if name not in names:
            raise ConfigError(f"{family} has no setting {name!r}. {suggest(name, names)}")
    try:
        return gym.create_dataset(family, **dict(settings))
    except (AssertionError, TypeError, ValueError) as error:
        raise ConfigError(f"{family} refuses {dict(settings)}: {error}") from error
