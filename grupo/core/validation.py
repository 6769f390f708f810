"""Checks of the values of fields, made before anything is loaded."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from grupo.core.errors import ConfigError
from grupo.core.types import Observation, Rollout, Task

# a field's name, its value, whether the value is allowed, and the allowed values in words
Constraint = tuple[str, object, bool, str]


def check_constraints(constraints: Iterable[Constraint]) -> None:
    """Raise `ConfigError` for the first value that is not allowed.

    >>> check_constraints([("max_new_tokens", 0, False, "1 or more")])
    Traceback (most recent call last):
    grupo.core.errors.ConfigError: max_new_tokens: 0. Allowed: 1 or more.
    """
    for field, value, is_allowed, allowed in constraints:
        if not is_allowed:
            raise ConfigError(f"{field}: {value!r}. Allowed: {allowed}.")


def prefix_constraints(prefix: str, constraints: Iterable[Constraint]) -> Iterator[Constraint]:
    """The constraints of a component with its place before each field: "policy.", for example."""
    for field, value, is_allowed, allowed in constraints:
        yield prefix + field, value, is_allowed, allowed


def generation_constraints(
    max_new_tokens: int, tokens_per_microbatch: int, stop_strings: object
) -> list[Constraint]:
    """The constraints of a policy's generation: its token limit, micro-batch and stop strings."""
    are_texts = isinstance(stop_strings, tuple) and all(
        isinstance(text, str) and text for text in stop_strings
    )
    return [
        ("max_new_tokens", max_new_tokens, max_new_tokens >= 1, "1 or more"),
        (
            "tokens_per_microbatch",
            tokens_per_microbatch,
            tokens_per_microbatch >= 1,
            "1 or more",
        ),
        ("stop_strings", stop_strings, are_texts, "a tuple of strings, none of them empty"),
    ]


def check_context_room(max_new_tokens: int, context_length: int) -> None:
    """Raise `ConfigError` if answers of `max_new_tokens` leave no room for a prompt."""
    allowed = f"below {context_length}, the context length of the model"
    fits = max_new_tokens < context_length
    check_constraints([("max_new_tokens", max_new_tokens, fits, allowed)])


def check_prompt_lengths(
    tasks: Iterable[Task],
    encode: Callable[[Rollout, Observation], Sequence[int]],
    context_length: int,
    max_new_tokens: int,
) -> None:
    """Raise `ConfigError` for a prompt that leaves no room for an answer of `max_new_tokens`."""
    room = context_length - max_new_tokens
    for task in tasks:
        length = len(encode(Rollout(), task.prompt))
        if length > room:
            raise ConfigError(
                f"prompt: task {task.key}, {str(task.prompt)[:60]!r}, has {length} tokens. Allowed:"
                f" {max(room, 0)}, which is the context length of {context_length} less"
                f" policy.max_new_tokens, {max_new_tokens}."
            )
