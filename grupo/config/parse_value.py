"""Values in Python's notation: text from the command line as a value of a field's type.

A value is a literal, a string, or a component written as the code that makes it: `Cosine(1e-5, 0)`,
`Lora(rank=8)`, `Updates(2, minibatches=4)`. The type of a field determines its components: the
component's own class, or the implementations of a protocol in the protocol's module. Where a
function is allowed, `file.py:name` is one of the user's. Nothing is evaluated: calls are parsed,
and components are constructed from the parsed arguments.
"""

import ast
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, Literal

from grupo.core.field_types import coerce_number, describe_type, matches_type
from grupo.core.protocols import available_components, is_protocol, protocol_methods
from grupo.util.errors import ConfigError, suggest
from grupo.util.importing import import_object
from grupo.util.python_text import parse_expression
from grupo.util.spelling import nearest

TOML_BOOLEANS = {"true": True, "false": False}
ADDRESS = re.compile(r"[^\s():,'\"]+:[A-Za-z_][\w.]*")  # of a function: file.py:name, module:name
JSON_NAMES = {**TOML_BOOLEANS, "null": None}


def parse_value(text: str, hint: Any, field: str) -> Any:
    """The value that `text` spells for a field of type `hint`.

    Args:
        text: The value in Python's notation; quotes around a string may be left out.
        hint: Type of the field.
        field: Name of the field, for error messages.

    >>> from grupo.algo.minibatches import UpdatePlan
    >>> parse_value("Updates(2, minibatches=4)", UpdatePlan, "updates")
    Updates(epochs=2, minibatches=4)
    >>> parse_value("('a', 'b')", tuple[str, ...], "stop_strings")
    ('a', 'b')
    >>> parse_value("true", bool, "policy.apply_chat_template")  # as recipe files have it
    True
    """
    try:
        node = parse_expression(text)
    except SyntaxError:
        value = text
    else:
        value = _value(node, hint, field)
        if isinstance(value, str) and not isinstance(node, ast.Constant):
            value = text  # as written: gpt2-medium is not a subtraction
    value = value if matches_type(value, hint) else _imported(text, hint)
    if not matches_type(value, hint):
        allowed = f"{describe_type(hint)}.{_notation(text, hint)}"
        raise ConfigError(f"{field}: {text!r} does not fit. Allowed: {allowed}")
    return value


def _notation(text: str, hint: Any) -> str:
    """How a value that does not fit is written; "" if nothing is near it.

    >>> _notation("adamw", Literal["Adam", "SGD"])
    " Did you mean 'Adam'?"
    >>> print(_notation("###", tuple[str, ...]))
     Write "('###',)".
    """
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    members = typing.get_args(hint) if is_union else (hint,)
    if tuple[str, ...] in members:
        return f' Write "({text!r},)".'
    choices = [str(x) for m in members if typing.get_origin(m) is Literal for x in m.__args__]
    classes = {n: x for n, x in available_components(hint).items() if isinstance(x, type)}
    if classes and text.count("(") != text.count(")"):
        return " A bracket is missing."
    close = nearest(text, [*choices, *classes])
    if close in choices:
        return f" Did you mean {close!r}?"
    if close:
        return f" Did you mean {_call_example(close, classes[close])!r}?"
    if len(classes) == 1:
        ((name, cls),) = classes.items()
        return f' Write "{_call_example(name, cls) if _required(cls) else _long_call(name, cls)}".'
    return ""


def _required(cls: type[Any]) -> list[str]:
    """The fields of a component that have no default."""
    return [f.name for f in fields(cls) if f.default is f.default_factory is MISSING]


def _call_example(name: str, cls: type[Any]) -> str:
    return f"{name}({', '.join(f'{field}=…' for field in _required(cls))})"


def _long_call(name: str, cls: type[Any]) -> str:
    """A call with the first fields of a component, all of which have defaults."""
    names = [f.name for f in fields(cls) if f.init]
    return f"{name}({', '.join(f'{field}=…' for field in names[:3])}{', …' * (len(names) > 3)})"


def _value(node: ast.expr, hint: Any, field: str) -> Any:
    """A component or function by name, a tuple of values, a literal, or else the code as text."""
    if typing.get_origin(hint) is Mapping:
        return plain_value(ast.unparse(node))
    known = available_components(hint)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and known:
        return _build_call(node, node.func.id, known, field)
    if isinstance(node, ast.Name) and node.id in known:
        return known[node.id]
    if isinstance(node, ast.Name) and hint is bool and node.id in TOML_BOOLEANS:
        return TOML_BOOLEANS[node.id]
    tuple_hint = _tuple_member(hint)
    if isinstance(node, ast.Tuple) and tuple_hint:
        arguments = typing.get_args(tuple_hint)
        is_homogeneous = arguments[-1:] == (...,)
        hints = arguments[:1] * len(node.elts) if is_homogeneous else arguments
        if len(hints) == len(node.elts):
            return tuple(map(_value, node.elts, hints, [field] * len(hints)))
    try:
        value = coerce_number(ast.literal_eval(node), hint)
    except (ValueError, TypeError):
        return ast.unparse(node)
    return _imported(value, hint)


def _imported(value: Any, hint: Any) -> Any:
    """The user's function or component that an address names, or the value as it is."""
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    members = typing.get_args(hint) if is_union else (hint,)
    takes_functions = any(is_protocol(m) and protocol_methods(m) == {"__call__"} for m in members)
    is_address = isinstance(value, str) and ADDRESS.fullmatch(value) is not None
    return import_object(value) if takes_functions and is_address else value


def plain_value(text: str) -> Any:
    """A value in the notation of Python or of JSON, of which arrays become tuples; or the text."""
    try:
        node = _JsonNames().visit(parse_expression(text))
        return ast.literal_eval(node)
    except (SyntaxError, ValueError, TypeError):
        return text


class _JsonNames(ast.NodeTransformer):
    """Replaces what JSON and Python write differently, and lists by tuples."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(JSON_NAMES[node.id]) if node.id in JSON_NAMES else node

    def visit_List(self, node: ast.List) -> ast.expr:
        return ast.Tuple([self.visit(entry) for entry in node.elts], ast.Load())


def _tuple_member(hint: Any) -> Any:
    """The type itself if it is a tuple, or the first tuple of a union; otherwise None."""
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    members = typing.get_args(hint) if is_union else (hint,)
    return next((x for x in members if typing.get_origin(x) is tuple), None)


def _build_call(call: ast.Call, name: str, known: dict[str, Any], field: str) -> Any:
    """The component that a parsed call constructs."""
    classes = {n: cls for n, cls in known.items() if isinstance(cls, type)}
    if name not in classes:
        raise ConfigError(f"{field}: {name!r} cannot be used here. {suggest(name, classes)}")
    cls = classes[name]
    hints = typing.get_type_hints(cls)
    arguments = {}
    for argument, node in _bind_arguments(call, cls, field).items():
        value = _value(node, hints[argument], f"{field}, {argument} of {name}")
        if not matches_type(value, hints[argument]):
            raise ConfigError(
                f"{field}: {argument} of {name}: {ast.unparse(node)} does not fit."
                f" Allowed: {describe_type(hints[argument])}."
            )
        arguments[argument] = value
    return with_field_in_error(lambda: cls(**arguments), field, ast.unparse(call))


def _bind_arguments(call: ast.Call, cls: type[Any], field: str) -> dict[str, ast.expr]:
    """The code of each argument of a call, by field of the component."""
    known = {f.name: f for f in fields(cls) if f.init}
    positional = list(known)[: len(call.args)]
    names = [*positional, *(str(keyword.arg) for keyword in call.keywords)]
    nodes = [*call.args, *(keyword.value for keyword in call.keywords)]
    signature = f"{cls.__name__}({', '.join(known)})"
    if len(names) < len(nodes) or len(set(names)) < len(names):
        raise ConfigError(
            f"{field}: {ast.unparse(call)!r} has too many arguments. Allowed: {signature}."
        )
    for name in names:
        if name not in known:
            raise ConfigError(f"{field}: {cls.__name__} has no {name!r}. {suggest(name, known)}")
    for name, f in known.items():
        if name not in names and f.default is f.default_factory is MISSING:
            raise ConfigError(
                f"{field}: {ast.unparse(call)!r} lacks {name!r}. Allowed: {signature}."
            )
    return dict(zip(names, nodes, strict=True))


def with_field_in_error(make: typing.Callable[[], Any], field: str, text: str) -> Any:
    """The result of `make`; errors of a component that checks itself begin with the field."""
    try:
        return make()
    except ConfigError as error:
        place, _, text = str(error).partition(": ")
        message = text if place.endswith(last_segment(field)) else str(error)
        raise ConfigError(f"{field}: {message}") from error
    except TypeError as error:
        raise ConfigError(f"{field}: {text!r} does not fit: {error}.") from error


def last_segment(field: str) -> str:
    """The last name of a dotted field."""
    return field.rpartition(".")[2]
