"""Objects that exist only in the running process, and the placeholders of those that are gone."""

from typing import Any

from grupo.util.errors import ConfigError


class MissingObjectError(ConfigError, AttributeError):
    """A use of an object that existed only in the process that began a run."""


class InMemory:
    """Base class of objects that no file holds; two of them are equal if they are identical."""

    @property
    def description(self) -> str:
        """The object in a few words."""
        raise NotImplementedError

    @property
    def remedy(self) -> str:
        """How to make it an object that a recipe can be read back with."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{self.description}>"

    def __str__(self) -> str:
        return self.description


class MissingObject(InMemory):
    """Takes the place of an object that existed only in the process that began a run.

    Any use raises `MissingObjectError`.

    Args:
        description: The object in a few words.
        remedy: How to make it an object that a recipe can be read back with.
    """

    def __init__(self, description: str, remedy: str) -> None:
        self._description = description
        self._remedy = remedy

    @property
    def description(self) -> str:
        return self._description

    @property
    def remedy(self) -> str:
        return self._remedy

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MissingObject) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.description, self.remedy))

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        raise self.error()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.error()

    def error(self) -> MissingObjectError:
        """The error of its use."""
        return MissingObjectError(
            f"The run used an object in memory, {self.description}, which existed only in the"
            f" process that began it. In a new run, {self.remedy}."
        )
