"""Fields that requests of both forms have: limits, flags, and options that do not apply.

In training the policy samples from the distribution that is trained. Options that would change it
do not apply, and are counted; stop strings and the limits of length apply, since they only end an
answer.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from grupo.core.model_call import NO_LIMIT
from grupo.envs.proxy.api_error import ApiError, invalid
from grupo.util.json_text import check_unicode, has_more_values
from grupo.util.limits import REQUEST_VALUES

# options that do not apply, with the values that ask for nothing; None asks for nothing anywhere
Options = Mapping[str, tuple[Any, ...]]
SAMPLING_OPTIONS: Options = {
    "temperature": (1,),
    "top_p": (1,),
    "top_k": (-1, 0),
    "min_p": (0,),
}
COMMON_OPTIONS: Options = {
    **SAMPLING_OPTIONS,
    "tool_choice": ("auto", "none"),
    "parallel_tool_calls": (True,),
}


def check_body(body: Any, field: str) -> Mapping[str, Any]:
    """The body of a request as an object.

    Args:
        body: The body.
        field: Name of the field with what the policy is to read, for the message.

    Raises:
        ApiError: It is no object, or has too many values, or half of a surrogate pair.
    """
    if not isinstance(body, Mapping):
        raise ApiError(f"The body is no object. Allowed: JSON with the field '{field}'.")
    if has_more_values(body, REQUEST_VALUES.maximum):
        raise ApiError(f"The body has too many values. Allowed: {REQUEST_VALUES.allowed}.")
    try:
        check_unicode(body)
    except ValueError as error:
        raise ApiError(f"The body: {error}.") from error
    if body.get("top_logprobs"):
        raise invalid("top_logprobs", body["top_logprobs"], "0; logprobs gives those of the answer")
    return body


def given_options(body: Mapping[str, Any], options: Options) -> tuple[str, ...]:
    """Names of the options that a request gives, and that do not apply in training."""
    return tuple(
        name
        for name, nothing in options.items()
        if body.get(name) is not None and body[name] not in nothing
    )


def sampling_values(body: Mapping[str, Any], given: Sequence[str]) -> Mapping[str, float]:
    """The values of those of the given options that a policy applies outside of training."""
    return {name: _number(name, body[name]) for name in given if name in SAMPLING_OPTIONS}


def flag(fields: Mapping[str, Any], name: str) -> bool:
    """A field that is true or false; one that is missing is false."""
    value = fields.get(name)
    if value not in (None, True, False):
        raise invalid(name, value, "true or false")
    return bool(value)


def token_limit(body: Mapping[str, Any], *names: str) -> int:
    """The smallest of these limits of an answer's tokens."""
    limits = [_positive(name, body[name]) for name in names if body.get(name) is not None]
    return min(limits, default=NO_LIMIT)


def model_name(body: Mapping[str, Any]) -> str:
    """The name of the model, which the answer repeats."""
    return str(body.get("model") or "policy")


def _number(name: str, value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise invalid(name, value, "a number")
    return value


def _positive(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise invalid(name, value, "a whole number of 1 or more")
    return value
