"""Errors of reward functions, which a rubric of verifiers replaces by a reward of 0."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from grupo.envs.timeouts import failure_from_exception

ERRORS_KEY = "grupo_reward_errors"  # entry of a rollout's state
State = dict[str, Any]


def record_reward_errors(rubric: Any) -> None:
    """Make the reward functions of a rubric, and of those in it, record their errors."""
    rubric.funcs = [_recording(function) for function in rubric.funcs]
    for inner in getattr(rubric, "rubrics", ()):
        record_reward_errors(inner)


def reward_errors(state: State) -> Sequence[str]:
    """The errors that reward functions raised for a state."""
    return state.get(ERRORS_KEY) or ()


def _recording(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with errors recorded in the states that it was to score.

    A rubric passes arguments by name: the returned function requests the state beside them.
    """
    signature = inspect.signature(function)
    parameters = signature.parameters.values()
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)

    @functools.wraps(function)
    async def call(**arguments: Any) -> Any:
        own = (
            arguments
            if takes_any
            else {n: arguments[n] for n in signature.parameters if n in arguments}
        )
        try:
            value = function(**own)
            return await value if inspect.isawaitable(value) else value
        except Exception as error:
            reason = failure_from_exception(error).reason
            for state in _states(arguments):
                state.setdefault(ERRORS_KEY, []).append(f"the reward {_name(function)!r} {reason}")
            raise

    extra = [n for n in ("state", "states") if n not in signature.parameters and not takes_any]
    is_group = any(name in signature.parameters for name in _GROUP_NAMES)
    wanted = [n for n in extra if (n == "states") == is_group]
    keywords = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in wanted]
    call.__dict__["__signature__"] = _extended(signature, keywords)
    return call


_GROUP_NAMES = ("states", "prompts", "completions", "answers", "tasks", "infos")


def _extended(signature: inspect.Signature, keywords: Sequence[inspect.Parameter]) -> Any:
    """The signature with keyword arguments after its own; ** stays the last one."""
    own = list(signature.parameters.values())
    has_rest = bool(own) and own[-1].kind is inspect.Parameter.VAR_KEYWORD
    parameters = [*own[:-1], *keywords, own[-1]] if has_rest else [*own, *keywords]
    return signature.replace(parameters=parameters)


def _states(arguments: Mapping[str, Any]) -> Iterator[State]:
    if "states" in arguments:
        yield from arguments["states"]
    elif "state" in arguments:
        yield arguments["state"]


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", repr(function))
