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
from grupo.catalogue.ranges import out_of_range
from grupo.core.component import show
from grupo.core.errors import Refused, nearest
from grupo.core.importing import load_file
from grupo.core.serialization import fits
from grupo.method import Method

TEXT = re.compile(r"(?:(?P<path>.+\.py):)?(?P<call>[^:]*(?:\(.*\))?)", re.DOTALL)


def parse(text: str) -> Method:
    """The method that `text` names, of this package or of a file: `path/to/file.py:name(a=1)`.

    >>> parse("grpo(kl=0.0)").loss
    Clip(low=0.2, high=0.2)
    """
    path, call = _split(text)
    name, positional, named = _call(call, text)
    module = load_file(Path(path)) if path else _packaged(name)
    made = _member(module, name)
    if isinstance(made, Method) and call == name:
        return made
    if not inspect.isfunction(made):
        raise Refused(f"method: {name!r} in {text!r} is {_kind(made)}, not a function.")
    signature, ours = inspect.signature(made, eval_str=True), not path
    _check(signature, name, positional, named, ours=ours)
    method = made(*positional, **named)
    if not isinstance(method, Method):
        raise Refused(f"method: {name!r} has to return a Method; it returned {_kind(method)}.")
    return method


def _split(text: str) -> tuple[str, str]:
    match = TEXT.fullmatch(text.strip())
    if match is None:
        allowed = "name, name(argument=value), file.py:name"
        raise Refused(f"method: cannot read {text!r}. Allowed: {allowed}.")
    return match["path"] or "", match["call"].strip()


def _call(call: str, text: str) -> tuple[str, list[Any], dict[str, Any]]:
    """The name and the literal arguments of a call, or of a bare name."""
    try:
        node = ast.parse(call, mode="eval").body
    except SyntaxError as error:
        raise Refused(f"method: cannot read {text!r}: {error.msg}.") from error
    if isinstance(node, ast.Name):
        return node.id, [], {}
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        raise Refused(f"method: {text!r} is neither a name nor name(argument=value).")
    name = node.func.id
    positional = [_literal(value, f"{name}'s argument {i}") for i, value in enumerate(node.args, 1)]
    named = {key.arg or "**": _literal(key.value, f"{name}: {key.arg}") for key in node.keywords}
    return name, positional, named


def _literal(node: ast.expr, where: str) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError as error:
        given = ast.unparse(node)
        raise Refused(f"{where} is {given!r}; numbers, strings and tuples are allowed.") from error


def _packaged(name: str) -> ModuleType:
    known = [module.name for module in pkgutil.iter_modules(grupo.methods.__path__)]
    if name not in known:
        raise Refused(f"method: there is no {name!r}. {nearest(name, known)}")
    return import_module(f"grupo.methods.{name}")


def _member(module: ModuleType, name: str) -> Any:
    own = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, Method) or getattr(value, "__module__", "") == module.__name__
    }
    if name not in own:
        raise Refused(f"method: {module.__file__} has no {name!r}. {nearest(name, own)}")
    return own[name]


def _check(
    signature: inspect.Signature,
    name: str,
    positional: list[Any],
    named: dict[str, Any],
    *,
    ours: bool,
) -> None:
    """Refuse arguments that the function does not take, that it misses, or of another type.

    What the numbers of our own methods may be we know, too.
    """
    known = signature.parameters
    given = _bound(known, name, positional, named)
    missing = [p.name for p in known.values() if p.default is p.empty and p.name not in given]
    if missing:
        call = ", ".join(f"{argument}=..." for argument in missing)
        raise Refused(f"{name}: {', '.join(missing)} must be given: {name}({call}).")
    for argument, value in given.items():
        hint = known[argument].annotation
        if not _fits(value, hint):
            allowed = inspect.formatannotation(hint)
            raise Refused(f"{name}: {argument} is {value!r}; allowed is {allowed}.")
        if allowed := ours and out_of_range(known[argument], value):
            raise Refused(f"{name}: {argument} is {value!r}; allowed is {allowed}.")


def _bound(
    known: Mapping[str, inspect.Parameter],
    name: str,
    positional: list[Any],
    named: dict[str, Any],
) -> dict[str, Any]:
    """The value given to each argument."""
    ordered = [p.name for p in known.values() if p.kind is not p.KEYWORD_ONLY]
    if len(positional) > len(ordered):
        raise Refused(f"{name}: {len(positional)} arguments given. Allowed: {', '.join(ordered)}.")
    given = dict(zip(ordered, positional, strict=False))
    for argument in named:
        if argument not in known:
            raise Refused(f"{name}: there is no argument {argument!r}. {nearest(argument, known)}")
        if argument in given:
            raise Refused(f"{name}: {argument!r} is given twice.")
    return given | named


def _fits(value: Any, hint: Any) -> bool:
    """Is a literal of the type that an annotation says? A whole number will do for a float."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    unsaid = hint is inspect.Parameter.empty
    return unsaid or fits(value, hint) or (whole and fits(float(value), hint))


def _kind(value: object) -> str:
    return f"{show(value)}, of type {type(value).__name__}"
