"""Numbers that cannot be, refused before anything is loaded."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from grupo.core.errors import Refused
from grupo.core.types import Observation, Rollout, Task

Rule = tuple[str, object, bool, str]  # a field, its value, whether that is allowed, what is


def check(rules: Iterable[Rule]) -> None:
    """Refuse the first value that is not allowed.

    >>> check([("limit", 0, False, "1 or more")])
    Traceback (most recent call last):
    grupo.core.errors.Refused: limit: 0. Allowed: 1 or more.
    """
    for field, value, allowed, what in rules:
        if not allowed:
            raise Refused(f"{field}: {value!r}. Allowed: {what}.")


def within(place: str, rules: Iterable[Rule]) -> Iterator[Rule]:
    """The rules of a piece that lies at a place: "" or "policy." …"""
    for field, value, allowed, what in rules:
        yield place + field, value, allowed, what


def of_answers(limit: int, budget: int, stop: object) -> list[Rule]:
    """How long answers are, how much is worked on at once, what ends answers early."""
    texts = isinstance(stop, tuple) and all(isinstance(text, str) and text for text in stop)
    return [
        ("limit", limit, limit >= 1, "1 or more"),
        ("budget", budget, budget >= 1, "1 or more"),
        ("stop", stop, texts, "a tuple of texts, none of them empty"),
    ]


def check_room(limit: int, context: int) -> None:
    """Refuse answers that leave no room for a prompt."""
    check([("limit", limit, limit < context, f"below {context}, which is all the model reads")])


def check_prompts(
    tasks: Iterable[Task],
    read: Callable[[Rollout, Observation], Sequence[int]],
    context: int,
    limit: int,
) -> None:
    """Refuse prompts that leave no room for an answer of `limit` tokens."""
    room = context - limit
    for task in tasks:
        length = len(read(Rollout(), task.prompt))
        if length > room:
            raise Refused(
                f"prompt: task {task.key}, {str(task.prompt)[:60]!r}, has {length} tokens; the"
                f" model reads {context}, policy.limit keeps {limit} of them for the answer."
                f" Allowed: {max(room, 0)}."
            )
