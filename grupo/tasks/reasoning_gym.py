"""Tasks that reasoning-gym generates, as many as wanted, each with a verifier."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from grupo.core.component import piece
from grupo.core.errors import Refused, nearest
from grupo.core.types import Task
from grupo.tasks.base import Indexed, key_of

Settings = tuple[tuple[str, Any], ...]


@piece
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
    settings: Settings = ()
    template: str = "{question}"  # what the policy reads

    def __post_init__(self) -> None:
        if "{question}" not in self.template:
            raise Refused(f"template: {self.template!r} does not say where {{question}} goes.")
        self._dataset()

    def load(self) -> Sequence[Task]:
        dataset = self._dataset()
        return Indexed(self.size, lambda i: self._task(dataset[i]))

    def _dataset(self) -> Any:
        given = (("size", self.size), ("seed", self.seed), *self.settings)
        return dataset_of(self.family, given)

    def _task(self, entry: dict[str, Any]) -> Task:
        prompt = self.template.replace("{question}", entry["question"])
        columns = {"entry": entry, "settings": self.settings}
        return Task(key_of(prompt), prompt, entry["answer"], self.family, columns)


def dataset_of(family: str, settings: Settings) -> Any:
    """reasoning-gym's own dataset; families, settings and values that it lacks are refused."""
    import reasoning_gym.factory as gym  # a second to import: only those who use it wait

    if family not in gym.DATASETS:
        raise Refused(f"reasoning-gym has no family {family!r}. {nearest(family, gym.DATASETS)}")
    names = [f.name for f in fields(gym.DATASETS[family][1])]
    for name, _ in settings:
        if name not in names:
            raise Refused(f"{family} has no setting {name!r}. {nearest(name, names)}")
    try:
        return gym.create_dataset(family, **dict(settings))
    except (AssertionError, TypeError, ValueError) as error:
        raise Refused(f"{family} refuses {dict(settings)}: {error}") from error
