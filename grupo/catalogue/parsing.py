"""From what is typed to a method: a name, a file, and arguments that are literals."""

import ast
import inspect
import pkgutil
import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import GenericAlias, ModuleType, UnionType
from typing import Any, get_args

import grupo.methods
from grupo.errors import Refused, nearest
from grupo.method import Method
from grupo.piece import show

TEXT = re.compile(r"(?:(?P<path>.+\.py):)?(?P<call>[^:]*(?:\(.*\))?)", re.DOTALL)


def parse(text: str) -> Method:
    """The method that `text` names, of this package or of a file: `path/to/file.py:name(a=1)`.

    >>> parse("grpo(kl=0.0)").loss
    Clip(low=0.2, high=0.2)
    """
    path, call = _split(text)
    name, positional, named = _call(call, text)
    module = _file(path) if path else _packaged(name)
    made = _member(module, name)
    if isinstance(made, Method) and call == name:
        return made
    if not inspect.isfunction(made):
        raise Refused(f"method: {name!r} in {text!r} is {_kind(made)}, not a function.")
    _check(inspect.signature(made), name, positional, named)
    method = made(*positional, **named)
    if not isinstance(method, Method):
        raise Refused(f"method: {name!r} has to return a Method; it returned {_kind(method)}.")
    return method


def _split(text: str) -> tuple[str, str]:
    match = TEXT.fullmatch(text.strip())
    if match is None:
        raise Refused(
            f"method: cannot read {text!r}; write name, name(argument=value) or file.py:name."
        )
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


def _file(path: str) -> ModuleType:
    file = Path(path).resolve()
    if not file.is_file():
        beside = [other.name for other in file.parent.glob("*.py")]
        raise Refused(f"method: there is no file {path!r}. {nearest(file.name, beside)}")
    return _loaded(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _loaded(file: Path, changed: int) -> ModuleType:
    """Once per version of a file: a method parsed twice is the same method."""
    spec = spec_from_file_location(f"method_files.{file.stem}", file)
    assert spec is not None, "a file that ends in .py has a loader"
    assert spec.loader is not None, "a file that ends in .py has a loader"
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
    signature: inspect.Signature, name: str, positional: list[Any], named: dict[str, Any]
) -> None:
    """Refuse arguments that the function does not take, that it misses, or of another type."""
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
    """Is a literal of the type that an annotation says, as far as an annotation can be checked?"""
    if isinstance(hint, UnionType):
        return any(_fits(value, option) for option in get_args(hint))
    if isinstance(hint, GenericAlias):
        return _fits(value, hint.__origin__)
    if hint is inspect.Parameter.empty or not isinstance(hint, type):
        return True
    allowed = (int, float) if hint is float else hint
    return isinstance(value, allowed) and (hint is bool or not isinstance(value, bool))


def _kind(value: object) -> str:
    return f"a {type(value).__name__}, {show(value)}"
