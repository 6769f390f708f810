"""From what is typed to a method: a name, a file, and arguments that are literals."""

import ast
import inspect
import pkgutil
import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import grupo.methods
from grupo.catalogue.ranges import range_violation
from grupo.core.component import to_code
from grupo.core.errors import ConfigError, suggest
from grupo.core.importing import load_module_file
from grupo.core.serialization import matches_type
from grupo.method import Method

METHOD_PATTERN = re.compile(r"(?:(?P<path>.+\.py):)?(?P<call>[^:]*(?:\(.*\))?)", re.DOTALL)


def parse_method(text: str) -> Method:
    """The method that `text` names, of this package or of a file: `path/to/file.py:name(a=1)`.

    >>> parse_method("grpo(kl_coef=0.0)").loss
    Clip(clip_low=0.2, clip_high=0.2)
    """
    path, call = _split_path(text)
    name, positional, named = _parse_call(call, text)
    module = load_module_file(Path(path)) if path else _method_module(name)
    made = _find_member(module, name)
    if isinstance(made, Method) and call == name:
        return made
    if not inspect.isfunction(made):
        raise ConfigError(
            f"method: {name!r} in {text!r} is {_describe_value(made)}, not a function."
        )
    signature, ours = inspect.signature(made, eval_str=True), not path
    _check_arguments(signature, name, positional, named, built_in=ours)
    method = made(*positional, **named)
    if not isinstance(method, Method):
        raise ConfigError(
            f"method: {name!r} has to return a Method; it returned {_describe_value(method)}."
        )
    return method


def _split_path(text: str) -> tuple[str, str]:
    match = METHOD_PATTERN.fullmatch(text.strip())
    if match is None:
        allowed = "name, name(argument=value), file.py:name"
        raise ConfigError(f"method: cannot read {text!r}. Allowed: {allowed}.")
    return match["path"] or "", match["call"].strip()


def _parse_call(call: str, text: str) -> tuple[str, list[Any], dict[str, Any]]:
    """The name and the literal arguments of a call, or of a bare name."""
    try:
        node = ast.parse(call, mode="eval").body
    except SyntaxError as error:
        raise ConfigError(f"method: cannot read {text!r}: {error.msg}.") from error
    if isinstance(node, ast.Name):
        return node.id, [], {}
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        raise ConfigError(f"method: {text!r} is neither a name nor name(argument=value).")
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
        return ast.literal_eval(node)
    except ValueError as error:
        given = ast.unparse(node)
        raise ConfigError(
            f"{where} is {given!r}; numbers, strings and tuples are allowed."
        ) from error


def _method_module(name: str) -> ModuleType:
    known = [module.name for module in pkgutil.iter_modules(grupo.methods.__path__)]
    if name not in known:
        raise ConfigError(f"method: there is no {name!r}. {suggest(name, known)}")
    return import_module(f"grupo.methods.{name}")


def _find_member(module: ModuleType, name: str) -> Any:
    own = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, Method) or getattr(value, "__module__", "") == module.__name__
    }
    if name not in own:
        raise ConfigError(f"method: {module.__file__} has no {name!r}. {suggest(name, own)}")
    return own[name]


def _check_arguments(
    signature: inspect.Signature,
    name: str,
    positional: list[Any],
    keywords: dict[str, Any],
    *,
    built_in: bool,
) -> None:
    """Refuse arguments that the function does not take, that it misses, or of another type.

    What the numbers of our own methods may be we know, too.
    """
    known = signature.parameters
    given = _bind_arguments(known, name, positional, keywords)
    missing = [p.name for p in known.values() if p.default is p.empty and p.name not in given]
    if missing:
        call = ", ".join(f"{argument}=..." for argument in missing)
        raise ConfigError(f"{name}: {', '.join(missing)} must be given: {name}({call}).")
    for argument, value in given.items():
        hint = known[argument].annotation
        if not _matches_type(value, hint):
            allowed = inspect.formatannotation(hint)
            raise ConfigError(f"{name}: {argument} is {value!r}; allowed is {allowed}.")
        if allowed := built_in and range_violation(known[argument], value):
            raise ConfigError(f"{name}: {argument} is {value!r}; allowed is {allowed}.")


def _bind_arguments(
    parameters: Mapping[str, inspect.Parameter],
    name: str,
    positional: list[Any],
    keywords: dict[str, Any],
) -> dict[str, Any]:
    """The value given to each argument."""
    ordered = [p.name for p in parameters.values() if p.kind is not p.KEYWORD_ONLY]
    if len(positional) > len(ordered):
        raise ConfigError(
            f"{name}: {len(positional)} arguments given. Allowed: {', '.join(ordered)}."
        )
    given = dict(zip(ordered, positional, strict=False))
    for argument in keywords:
        if argument not in parameters:
            raise ConfigError(
                f"{name}: there is no argument {argument!r}. {suggest(argument, parameters)}"
            )
        if argument in given:
            raise ConfigError(f"{name}: {argument!r} is given twice.")
    return given | keywords


def _matches_type(value: Any, hint: Any) -> bool:
    """Is a literal of the type that an annotation says? A whole number will do for a float."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    unsaid = hint is inspect.Parameter.empty
    return unsaid or matches_type(value, hint) or (whole and matches_type(float(value), hint))


def _describe_value(value: object) -> str:
    return f"{to_code(value)}, of type {type(value).__name__}"
