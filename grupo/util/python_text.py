"""Python code in arguments and in texts of the policy, which is parsed and never evaluated."""

import ast
from typing import Literal

from grupo.util.limits import CODE_DEPTH


def parse_expression(text: str) -> ast.expr:
    """The syntax tree of an expression.

    Raises:
        SyntaxError: It is not an expression, or its nesting exceeds `CODE_DEPTH`.

    >>> ast.dump(parse_expression("grpo"))
    "Name(id='grpo', ctx=Load())"
    """
    tree = _parse(text, "eval")
    assert isinstance(tree, ast.Expression)
    return tree.body


def parse_statements(text: str) -> list[ast.stmt]:
    """The syntax trees of the statements of a program.

    Raises:
        SyntaxError: It is not a program, or its nesting exceeds `CODE_DEPTH`.
    """
    tree = _parse(text, "exec")
    assert isinstance(tree, ast.Module)
    return tree.body


def _parse(text: str, mode: Literal["eval", "exec"]) -> ast.AST:
    try:
        tree: ast.AST = ast.parse(text.strip(), mode=mode)
    except (ValueError, RecursionError, MemoryError) as error:  # NUL, surrogates, nesting
        raise SyntaxError(str(error) or "nested too deep") from error
    level = list(ast.iter_child_nodes(tree))
    for _ in range(CODE_DEPTH.maximum + 1):
        level = [child for parent in level for child in ast.iter_child_nodes(parent)]
        if not level:
            return tree
    raise SyntaxError(f"nested too deep. Allowed: {CODE_DEPTH.allowed}")
