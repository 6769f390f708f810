"""Parses a method from text: a name, or a file and a name, with literal arguments."""

import ast
import inspect
import math
import pkgutil
import re
import types
import typing
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import grupo.methods
from grupo.core.component import to_code
from grupo.core.controllers import Controller
from grupo.core.field_types import coerce_number, describe_type, matches_type
from grupo.core.paper import Paper
from grupo.core.ranges import range_violation
from grupo.core.schedules import Schedule
from grupo.core.sizes import check_size
from grupo.method import Method
from grupo.util.errors import ConfigError, suggest
from grupo.util.importing import load_module_file
from grupo.util.loader_errors import loader_errors
from grupo.util.python_text import parse_expression

ALLOWED_METHODS = "name, name(argument=value), file.py:name"
METHOD_PATTERN = re.compile(r"(?:(?P<path>.+\.py):)?(?P<call>[^:]*(?:\(.*\))?)", re.DOTALL)


def parse_method(text: str) -> Method:
    """The method that a text such as `grpo`, `dapo(64, 16)` or `file.py:name(a=1)` describes.

    Args:
        text: A method of the library, or a function or a `Method` in a Python file.

    Raises:
        ConfigError: The text cannot be parsed, or the arguments do not fit.

    >>> parse_method("grpo(kl_coef=0.0)").loss
    Clip(clip_low=0.2, clip_high=0.2)
    """
    path, call = _split_path(text)
    name, positional, named = _parse_call(call, text)
    module = load_module_file(Path(path)) if path else _method_module(name)
    member = _find_member(module, name)
    if isinstance(member, Method) and call == name:
        return member
    if not inspect.isfunction(member):
        raise ConfigError(
            f"method: {name!r} in {text!r} is {_describe_value(member)}, not a function."
        )
    with loader_errors(f"method: {text!r}"):  # annotations may name what does not exist
        signature = inspect.signature(member, eval_str=True)
    _check_arguments(signature, name, positional, named)
    with loader_errors(f"method: {text!r}"):
        method = member(*positional, **named)
    if not isinstance(method, Method):
        raise ConfigError(
            f"method: {name!r} must return a Method; it returned {_describe_value(method)}."
        )
    return method


def find_paper(text: str) -> Paper | None:
    """The record `PAPER` of the file that a text such as `dapo(64, 16)` or `file.py:name` names.

    None if the file has none, as a user's own may.

    >>> find_paper("gspo(group_size=4)").equals_grpo_when
    'there is one update per step'
    """
    path, call = _split_path(text)
    module = load_module_file(Path(path)) if path else _method_module(_parse_call(call, text)[0])
    paper = vars(module).get("PAPER")
    return paper if isinstance(paper, Paper) else None


def literal_type(hint: Any) -> Any:
    """A type without ranges, schedules and controllers: the type of its literals.

    >>> from grupo.core.numbers import NonNegative
    >>> literal_type(tuple[NonNegative, ...])
    tuple[float, ...]
    """
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is Annotated:
        return literal_type(arguments[0])
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        members = [literal_type(m) for m in arguments if m not in (Schedule, Controller)]
        union: Any = typing.Union  # of a computed number of members
        return union[tuple(members)]
    if typing.get_origin(hint) is tuple:
        members = tuple(m if m is ... else literal_type(m) for m in arguments)
        return types.GenericAlias(tuple, members)
    return hint


def _split_path(text: str) -> tuple[str, str]:
    match = METHOD_PATTERN.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"method: cannot read {text!r}. Allowed: {ALLOWED_METHODS}.")
    return match["path"] or "", match["call"].strip()


def _parse_call(call: str, text: str) -> tuple[str, list[Any], dict[str, Any]]:
    """The name and the literal arguments of a call; no arguments for a bare name."""
    try:
        node = parse_expression(call)
    except SyntaxError as error:
        raise ConfigError(
            f"method: cannot read {text!r}: {error.msg}. Allowed: {ALLOWED_METHODS}."
        ) from error
    if isinstance(node, ast.Name):
        return node.id, [], {}
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        hint = suggest(call.partition("(")[0].partition(",")[0], _method_names())
        if "," in call.partition("(")[0]:
            hint = f"Write --method again for each further method. {hint}"
        raise ConfigError(f"method: {text!r} is neither a name nor name(argument=value). {hint}")
    name = node.func.id
    positional = [
        _parse_literal(value, f"{name}'s argument {i}") for i, value in enumerate(node.args, 1)
    ]
    named = {
        key.arg or "**": _parse_literal(key.value, f"{name}: {key.arg}") for key in node.keywords
    }
    return name, positional, named


def _parse_literal(node: ast.expr, where: str) -> Any:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError) as error:  # TypeError: an unhashable key
        code = ast.unparse(node)
        raise ConfigError(
            f"{where} is {code!r}; numbers, strings and tuples are allowed."
        ) from error
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{where}: {value}. Allowed: finite numbers.")
    return value


def _method_names() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(grupo.methods.__path__)]


def _method_module(name: str) -> ModuleType:
    if not name.isidentifier() or find_spec(f"grupo.methods.{name}") is None:
        raise ConfigError(f"method: there is no {name!r}. {suggest(name, _method_names())}")
    return import_module(f"grupo.methods.{name}")


def _find_member(module: ModuleType, name: str) -> Any:
    members = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, Method) or getattr(value, "__module__", "") == module.__name__
    }
    if name not in members:
        raise ConfigError(f"method: {module.__file__} has no {name!r}. {suggest(name, members)}")
    return members[name]


def _check_arguments(
    signature: inspect.Signature,
    name: str,
    positional: list[Any],
    keywords: dict[str, Any],
) -> None:
    """Raise `ConfigError` for arguments that are unknown, missing, of another type or too large."""
    parameters = signature.parameters
    arguments = _bind_arguments(parameters, name, positional, keywords)
    required = [p.name for p in parameters.values() if p.default is p.empty]
    missing = [argument for argument in required if argument not in arguments]
    if missing:
        call = ", ".join(f"{argument}=..." for argument in missing)
        raise ConfigError(f"{name}: {', '.join(missing)} must be given: {name}({call}).")
    for argument, value in arguments.items():
        hint = parameters[argument].annotation
        check_size(f"{name}: {argument}", argument, value, hint)
        allowed = range_violation(value, hint)
        if not _matches_type(value, hint):
            allowed = describe_type(literal_type(hint))
        if allowed:
            raise ConfigError(f"{name}: {argument}: {value!r}. Allowed: {allowed}.")


def _bind_arguments(
    parameters: Mapping[str, inspect.Parameter],
    name: str,
    positional: list[Any],
    keywords: dict[str, Any],
) -> dict[str, Any]:
    """The value of each argument that the call gives."""
    ordered = [p.name for p in parameters.values() if p.kind is not p.KEYWORD_ONLY]
    if len(positional) > len(ordered):
        raise ConfigError(
            f"{name}: {len(positional)} arguments given. Allowed: {', '.join(ordered)}."
        )
    arguments = dict(zip(ordered, positional, strict=False))
    for argument in keywords:
        if argument not in parameters:
            raise ConfigError(
                f"{name}: there is no argument {argument!r}. {suggest(argument, parameters)}"
            )
        if argument in arguments:
            raise ConfigError(f"{name}: {argument!r} is given twice.")
    return arguments | keywords


def _matches_type(value: Any, hint: Any) -> bool:
    """True if a literal fits an annotation; an integer fits a float, and no annotation fits all."""
    if hint is inspect.Parameter.empty or matches_type(value, hint):
        return True
    return matches_type(coerce_number(value, hint), hint)


def _describe_value(value: object) -> str:
    return f"{to_code(value)}, of type {type(value).__name__}"
