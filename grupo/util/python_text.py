"""Python expressions in arguments, which are parsed and never evaluated."""

import ast

from grupo.util.limits import CODE_DEPTH


def parse_expression(text: str) -> ast.expr:
    """The syntax tree of an expression.

    Raises:
        SyntaxError: It is not an expression, or its nesting exceeds `CODE_DEPTH`.

    >>> ast.dump(parse_expression("grpo"))
    "Name(id='grpo', ctx=Load())"
    """
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (ValueError, RecursionError, MemoryError) as error:  # NUL, surrogates, nesting
        raise SyntaxError(str(error) or "nested too deep") from error
    level: list[ast.AST] = [node]
    for _ in range(CODE_DEPTH.maximum + 1):
        level = [child for parent in level for child in ast.iter_child_nodes(parent)]
        if not level:
            return node
    raise SyntaxError(f"nested too deep. Allowed: {CODE_DEPTH.allowed}")
