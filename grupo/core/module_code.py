"""The modules that define the parts of a component, and their code without remarks."""

import ast
import inspect
from functools import cache
from types import FunctionType, ModuleType

from grupo.core.component import walk


def module_names(value: object) -> set[str]:
    """The names of the modules that define the value and everything inside it.

    >>> from grupo.algo.advantages import Center
    >>> sorted(module_names((Center(), 2.0)))
    ['builtins', 'grupo.algo.advantages.baselines', 'grupo.core.group_ops']
    """
    return {
        (part if isinstance(part, FunctionType | type) else type(part)).__module__
        for part in walk(value)
    }


@cache
def code_of(module: ModuleType) -> str:
    """The module's syntax tree without docstrings, imports and `PAPER`."""
    tree = ast.parse(inspect.getsource(module))
    tree.body = [statement for statement in tree.body if not _is_left_out(statement)]
    for node in ast.walk(tree):
        body = getattr(node, "body", [])
        if isinstance(body, list) and body and _is_text(body[0]):
            del body[0]
    return ast.dump(tree)


def _is_left_out(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return True
    return isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "PAPER"


def _is_text(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
