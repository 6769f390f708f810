"""Python functions as rewards; the parameter names decide how a function is called."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from grupo.rewards.base import FunctionReward, Reward
from grupo.rewards.trl_verl import TRLReward, VerlBatchReward, VerlReward
from grupo.util.errors import ConfigError
from grupo.util.importing import import_function
from grupo.util.in_memory import MissingObject

# a reward in a recipe: the reward itself, a plain function in one of the signatures below, or the
# address of either, `module:name` or `file.py:name`
RewardSource = Reward | Callable[..., Any] | str

VERL_PARAMETERS = ("data_source", "solution_str", "ground_truth", "extra_info")
# the signature; a parameter name that identifies it; all parameter names, where they are fixed; the
# constructor of the reward
SIGNATURES: tuple[tuple[str, str, Sequence[str], Callable[[Any], Reward]], ...] = (
    ("f(task, rollouts)", "rollouts", ("task", "rollouts"), lambda f: f),
    ("f(task, rollout)", "rollout", ("task", "rollout"), FunctionReward),
    (
        "f(data_source, solution_str, ground_truth, extra_info)",
        "solution_str",
        VERL_PARAMETERS,
        VerlReward,
    ),
    (
        "f(data_sources, solution_strs, ground_truths, extra_infos)",
        "solution_strs",
        ("data_sources", "solution_strs", "ground_truths", "extra_infos"),
        VerlBatchReward,
    ),
    ("f(prompts, completions, **columns)", "completions", (), TRLReward),
    ("f(completion_ids, **columns)", "completion_ids", (), TRLReward),
)


def as_reward(function: Callable[..., Any]) -> Reward:
    """The function as a reward; a reward is returned as it is.

    Allowed are the signatures of `SIGNATURES`: group and per-rollout functions of grupo, and the
    reward functions of TRL and verl.

    Raises:
        ConfigError: The function has none of these signatures.

    >>> def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    ...     return float(solution_str == ground_truth)
    >>> as_reward(compute_score)
    VerlReward(function=reward_function.compute_score)
    """
    if isinstance(function, MissingObject):  # its signature is unknown
        return function
    if not callable(function):
        raise ConfigError(f"{function!r} is not a function. {_allowed_signatures()}")
    parameters = _parameters(function)
    for _, identifying_name, names, make_reward in SIGNATURES:
        if identifying_name in parameters and _accepts_names(parameters, names):
            return make_reward(function)
    if inspect.isclass(function):
        raise ConfigError(
            f"{_function_name(function)} is a class. Name an instance of it, or a function."
            f" {_allowed_signatures()}"
        )
    shown = f"({', '.join(map(str, parameters.values()))})"
    raise ConfigError(
        f"{_function_name(function)}{shown} has no signature of a reward function."
        f" {_allowed_signatures()}"
    )


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"{_function_name(function)} has no readable signature. {_allowed_signatures()}"
        ) from error


def _accepts_names(parameters: dict[str, inspect.Parameter], names: Sequence[str]) -> bool:
    """True if the function can be called with these names; (task, …) are positional, in order."""
    named = [p for p in parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    required = [p.name for p in named if p.default is p.empty]
    in_order = "task" not in names or [p.name for p in named[:2]] == list(names)
    return in_order and (not names or set(required) <= set(names))


def _function_name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", type(function).__name__)


def _allowed_signatures() -> str:
    return f"Allowed: {'; '.join(signature for signature, *_ in SIGNATURES)}."


def load_reward(source: RewardSource) -> Reward:
    """The reward that a field of a recipe names: an address is imported, a function adapted.

    Raises:
        ConfigError: There is nothing at the address, or no reward function.
    """
    return as_reward(import_function(source) if isinstance(source, str) else source)
