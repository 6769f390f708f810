"""Calls written in Python: `add(a=1, b=2)`, with literals as the values of named arguments."""

import ast
import json
from collections.abc import Mapping, Sequence

from grupo.envs.tools.formats.call import ToolCall
from grupo.util.python_text import parse_expression, parse_statements

ALLOWED = "Allowed: name(argument=value), with literals as values"


class PythonCallError(ValueError):
    """Python that is no call of a tool; the message says why."""


def read_python_call(node: ast.expr, start: int, end: int) -> ToolCall:
    """The call that an expression is, or why it is none.

    Args:
        node: The expression.
        start: The first character of the call in the whole text.
        end: The character after its last one.

    >>> call = read_python_call(parse_expression("add(a=1, b=[2.5, None])"), 0, 23)
    >>> call.name, call.arguments
    ('add', {'a': 1, 'b': [2.5, None]})
    """
    try:
        name, arguments = _name_and_arguments(node)
    except PythonCallError as error:
        return ToolCall(start, end, error=str(error))
    return ToolCall(start, end, name, arguments)


def write_python_call(name: str, arguments: Mapping[str, object]) -> str:
    """A call as Python.

    >>> write_python_call("add", {"a": 1, "b": [2.5, None]})
    'add(a=1, b=[2.5, None])'
    """
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def python_list(text: str) -> Sequence[ast.expr]:
    """The elements of a list, as `[add(a=1), sub(b=2)]` writes several calls.

    Raises:
        PythonCallError: The text is no list in Python.
    """
    try:
        node = parse_expression(text)
    except SyntaxError as error:
        raise PythonCallError(f"not Python: {error.msg}") from None
    if not isinstance(node, ast.List):
        raise PythonCallError(f"{_shown(node)} is no list. Allowed: [name(argument=value), ...]")
    return node.elts


def python_expressions(text: str) -> Sequence[ast.expr]:
    """The expressions of a program that has no other statements.

    Raises:
        PythonCallError: It is no Python, has other statements, or is empty.
    """
    try:
        statements = parse_statements(text)
    except SyntaxError as error:
        raise PythonCallError(f"not Python: {error.msg}") from None
    if not statements:
        raise PythonCallError(f"there is no call. {ALLOWED}")
    for statement in statements:
        if not isinstance(statement, ast.Expr):
            raise PythonCallError(f"{_shown(statement)} is no call. {ALLOWED}")
    return [statement.value for statement in statements if isinstance(statement, ast.Expr)]


def _name_and_arguments(node: ast.expr) -> tuple[str, dict[str, object]]:
    if not isinstance(node, ast.Call):
        raise PythonCallError(f"{_shown(node)} is no call. {ALLOWED}")
    if node.args or any(keyword.arg is None for keyword in node.keywords):
        raise PythonCallError(f"{_shown(node)} has an argument without a name. {ALLOWED}")
    pairs = [(str(keyword.arg), _literal(keyword)) for keyword in node.keywords]
    if len(dict(pairs)) < len(pairs):
        raise PythonCallError(f"{_shown(node)} has an argument twice")
    return ast.unparse(node.func), dict(pairs)


def _literal(keyword: ast.keyword) -> object:
    """The value of an argument, as JSON has it: a tuple is a list, and there are no sets."""
    try:
        return json.loads(json.dumps(ast.literal_eval(keyword.value)))
    except (ValueError, TypeError):
        shown = _shown(keyword.value)
        raise PythonCallError(f"{keyword.arg}={shown} is no literal. {ALLOWED}") from None


def _shown(node: ast.AST) -> str:
    return ast.unparse(node)[:80]
