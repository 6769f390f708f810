"""Checks of lengths against the context length of a model."""

from collections.abc import Callable, Iterable, Sequence

from grupo.core.errors import ConfigError
from grupo.core.loader_errors import loader_errors
from grupo.core.types import Observation, Rollout, Task


def check_context_room(max_new_tokens: int, context_length: int) -> None:
    """Raise `ConfigError` if answers of `max_new_tokens` leave no room for a prompt."""
    if max_new_tokens >= context_length:
        allowed = f"below {context_length}, the context length of the model"
        raise ConfigError(f"max_new_tokens: {max_new_tokens}. Allowed: {allowed}.")


def check_prompt_lengths(
    tasks: Iterable[Task],
    encode: Callable[[Rollout, Observation], Sequence[int]],
    context_length: int,
    max_new_tokens: int,
) -> None:
    """Raise `ConfigError` for a prompt that leaves no room for an answer of `max_new_tokens`."""
    room = context_length - max_new_tokens
    for task in tasks:
        with loader_errors(f"prompt: task {task.key}, {str(task.prompt)[:60]!r}"):
            length = len(encode(Rollout(), task.prompt))
        if length > room:
            raise ConfigError(
                f"prompt: task {task.key}, {str(task.prompt)[:60]!r}, has {length} tokens. Allowed:"
                f" {max(room, 0)}, which is the context length of {context_length} less"
                f" policy.max_new_tokens, {max_new_tokens}."
            )
