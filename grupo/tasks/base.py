"""The interface of task sources, the keys of tasks, and sequences of tasks made on demand."""

import hashlib
import json
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, overload

from grupo.core.media import Media
from grupo.core.types import Observation, Task
from grupo.util.errors import ConfigError

KEY_BYTES = 16  # of a hash; its text has two letters for each


class TaskSource(Protocol):
    """A source of tasks, such as a data set or a generator."""

    def load(self) -> Sequence[Task]:
        """The tasks."""
        ...


def task_key(prompt: Observation) -> str:
    """A hash of the prompt's content, which identifies its task across sources.

    A text has the same key as a chat with that text as the only message of the user.

    >>> chat = ({"content": "2 + 2 =", "role": "user"},)
    >>> task_key("2 + 2 =") == task_key(chat) != task_key("2 + 3 =")
    True
    """
    chat = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    stripped = [{**message, "content": _strip_text(message.get("content"))} for message in chat]
    canonical = json.dumps(stripped, sort_keys=True, default=_digest)
    return hashlib.blake2b(canonical.encode(), digest_size=KEY_BYTES).hexdigest()


def _strip_text(content: object) -> object:
    return content.strip() if isinstance(content, str) else content


def _digest(value: object) -> str:
    """The hash of bytes and of media; other objects have no canonical form."""
    if isinstance(value, Media):
        return value.digest
    if isinstance(value, bytes):
        return hashlib.blake2b(value, digest_size=16).hexdigest()
    raise ConfigError(
        f"A prompt holds a {type(value).__name__}, which has no canonical form. "
        "Allowed: text, numbers, lists, mappings, bytes, images, videos and audio."
    )


class TaskSequence(Sequence[Task]):
    """Tasks that are made or read when they are indexed."""

    @abstractmethod
    def task_at(self, index: int) -> Task:
        """The task at an index, 0 or more and below the number of tasks."""
        ...

    @overload
    def __getitem__(self, index: int) -> Task: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Task]: ...

    def __getitem__(self, index: int | slice) -> Task | Sequence[Task]:
        selected = range(len(self))[index]  # handles negative indices and raises IndexError
        if isinstance(selected, range):
            return [self.task_at(i) for i in selected]
        return self.task_at(selected)


@dataclass(frozen=True)
class LazyTasks(TaskSequence):
    """A sequence of tasks, each of which is made when it is indexed.

    Args:
        size: Number of tasks.
        make_task: Makes task i, for i in 0..size-1.
    """

    size: int
    make_task: Callable[[int], Task]

    def __len__(self) -> int:
        return self.size

    def task_at(self, index: int) -> Task:
        return self.make_task(index)
