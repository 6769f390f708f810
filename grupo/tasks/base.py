"""The seam between where tasks come from and who asks for them."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, overload

from grupo.core.errors import ConfigError
from grupo.core.types import Observation, Task


class TaskSource(Protocol):
    """Where tasks come from."""

    def load(self) -> Sequence[Task]: ...


def task_key(prompt: Observation) -> str:
    """The name of a question: the same content, the same key, wherever it came from.

    A text is the same question as a chat whose only message is that text of the user's.

    >>> task_key("2 + 2 =") == task_key(({"content": "2 + 2 =", "role": "user"},)) != task_key("2 + 3 =")
    True
    """
    chat = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    said = [{**message, "content": _strip_text(message.get("content"))} for message in chat]
    canonical = json.dumps(said, sort_keys=True, default=_digest)
    return hashlib.blake2b(canonical.encode(), digest_size=16).hexdigest()


def _strip_text(content: object) -> object:
    return content.strip() if isinstance(content, str) else content


def _digest(value: object) -> str:
    """What stands in a key for bytes; anything else has no content that could be compared."""
    if isinstance(value, bytes):
        return hashlib.blake2b(value, digest_size=16).hexdigest()
    raise ConfigError(
        f"A prompt holds a {type(value).__name__}, which has no canonical form. "
        "Allowed: text, numbers, lists, mappings and bytes."
    )


@dataclass(frozen=True)
class LazyTasks(Sequence[Task]):
    """`size` tasks, each made when it is asked for: `at(i)` for i in 0..size-1."""

    size: int
    make_task: Callable[[int], Task]

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, index: int) -> Task: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Task]: ...

    def __getitem__(self, index: int | slice) -> Task | Sequence[Task]:
        places = range(self.size)[index]  # raises IndexError, and knows negative numbers
        return (
            [self.make_task(i) for i in places]
            if isinstance(places, range)
            else self.make_task(places)
        )
