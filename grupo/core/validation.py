"""Numbers that cannot be, refused before anything is loaded."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from grupo.core.errors import ConfigError
from grupo.core.types import Observation, Rollout, Task

Constraint = tuple[str, object, bool, str]  # a field, its value, whether that is allowed, what is


def check_constraints(constraints: Iterable[Constraint]) -> None:
    """Refuse the first value that is not allowed.

    >>> check_constraints([("limit", 0, False, "1 or more")])
    Traceback (most recent call last):
    grupo.core.errors.Refused: limit: 0. Allowed: 1 or more.
    """
    for field, value, allowed, what in constraints:
        if not allowed:
            raise ConfigError(f"{field}: {value!r}. Allowed: {what}.")


def prefix_constraints(prefix: str, constraints: Iterable[Constraint]) -> Iterator[Constraint]:
    """The rules of a piece that lies at a place: "" or "policy." …"""
    for field, value, allowed, what in constraints:
        yield prefix + field, value, allowed, what


def generation_constraints(
    max_new_tokens: int, tokens_per_microbatch: int, stop_strings: object
) -> list[Constraint]:
    """How long answers are, how much is worked on at once, what ends answers early."""
    texts = isinstance(stop_strings, tuple) and all(
        isinstance(text, str) and text for text in stop_strings
    )
    return [
        ("limit", max_new_tokens, max_new_tokens >= 1, "1 or more"),
        ("budget", tokens_per_microbatch, tokens_per_microbatch >= 1, "1 or more"),
        ("stop", stop_strings, texts, "a tuple of texts, none of them empty"),
    ]


def check_context_room(max_new_tokens: int, context_length: int) -> None:
    """Refuse answers that leave no room for a prompt."""
    check_constraints(
        [
            (
                "limit",
                max_new_tokens,
                max_new_tokens < context_length,
                f"below {context_length}, which is all the model reads",
            )
        ]
    )


def check_prompt_lengths(
    tasks: Iterable[Task],
    encode: Callable[[Rollout, Observation], Sequence[int]],
    context_length: int,
    max_new_tokens: int,
) -> None:
    """Refuse prompts that leave no room for an answer of `limit` tokens."""
    room = context_length - max_new_tokens
    for task in tasks:
        length = len(encode(Rollout(), task.prompt))
        if length > room:
            raise ConfigError(
                f"prompt: task {task.key}, {str(task.prompt)[:60]!r}, has {length} tokens; the"
                f" model reads {context_length}, policy.max_new_tokens keeps {max_new_tokens} of them for the answer."
                f" Allowed: {max(room, 0)}."
            )
