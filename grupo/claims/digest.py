"""The digest of a run's code: a stored run is used again as long as its digest is the same."""

import ast
import hashlib
import inspect
import sys
from dataclasses import replace
from functools import cache
from types import FunctionType, ModuleType

from grupo.claims import metrics, policy, rollouts, train
from grupo.claims.claim import Arm, Setting
from grupo.claims.environments import tabular
from grupo.core.component import to_code, walk

COMMON_MODULES = (metrics, policy, rollouts, tabular, train)


@cache
def run_digest(setting: Setting, arm: Arm) -> str:
    """Digest of everything that a run's result depends on within the claims and the method.

    These are setting and arm without their description, the method's code, and the modules of the
    environment, of the training of claims and of the method's components, without comments,
    docstrings, imports and the records of papers. The trainer's own functions, which are imported,
    are left out: they are tested to compute the same.
    """
    method = arm.build()
    conditions = replace(setting, description="")
    parts = (*walk(method), *walk(setting))
    modules = {sys.modules[name] for part in parts if (name := _module_name(part))}
    ordered = sorted({*modules, *COMMON_MODULES}, key=lambda module: module.__name__)
    text = "\n".join([repr(conditions), arm.label, to_code(method), *map(_code_of, ordered)])
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _module_name(part: object) -> str:
    """The module of grupo that defines a component or a function; "" for other values."""
    owner = part if isinstance(part, FunctionType | type) else type(part)
    return owner.__module__ if owner.__module__.startswith("grupo.") else ""


@cache
def _code_of(module: ModuleType) -> str:
    """The module's syntax tree without docstrings, imports and `PAPER`."""
    tree = ast.parse(inspect.getsource(module))
    tree.body = [statement for statement in tree.body if not _is_left_out(statement)]
    for node in ast.walk(tree):
        body = getattr(node, "body", [])
        if isinstance(body, list) and body and _is_text(body[0]):
            node.body = body[1:]  # pyright: ignore[reportAttributeAccessIssue]
    return ast.dump(tree)


def _is_left_out(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return True
    return isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "PAPER"


def _is_text(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
