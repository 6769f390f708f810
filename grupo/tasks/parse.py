"""Tasks by name, as the command line is given them."""

import ast
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from grupo.core.errors import Refused, nearest
from grupo.tasks.base import TaskSource
from grupo.tasks.columns import Columns
from grupo.tasks.dataset import Rows
from grupo.tasks.mixture import Mix
from grupo.tasks.python import FromPython
from grupo.tasks.reasoning_gym import ReasoningGym

FORMS = (
    "rg:chain_sum(min_terms=2,max_terms=3)",
    "rg:chain_sum*2+rg:gcd",
    "rows.jsonl",
    "rows.parquet(prompt='question')",
    "a folder or hub name",
    "module:function",
    "file.py:function",
)


def named(text: str) -> TaskSource:
    """The tasks that a text names; arguments are literals.

    >>> named("rg:chain_sum(max_terms=3, size=100)")
    ReasoningGym(family='chain_sum', size=100, seed=0, settings=(('max_terms', 3),), \
template='{question}')
    >>> [weight for _, weight in named("rg:chain_sum*2+rg:gcd").sources]
    [2.0, 1.0]
    """
    text = text.strip()
    if not text:
        raise Refused(f"No tasks are named. Allowed: {', '.join(FORMS)}.")
    if text.startswith("rg:"):
        return _gyms(text)
    name, arguments = _call(text)
    if ":" in name and not Path(name).exists():
        return FromPython(name, **_known(arguments, {"columns": Columns}))
    return Rows(name, **_known(arguments, {"split": str, "config": str}))


def _gyms(text: str) -> TaskSource:
    terms = [_term(term) for term in _top_level(text, "+")]
    return terms[0][0] if [w for _, w in terms] == [1.0] else Mix(tuple(terms))


def _term(term: str) -> tuple[TaskSource, float]:
    source, *weight = _top_level(term, "*")
    try:
        return _gym(source), float(*weight) if weight else 1.0
    except (TypeError, ValueError) as error:
        if isinstance(error, Refused):
            raise
        raise Refused(f"{term!r}: what follows * is not a weight. Allowed: a number.") from error


def _gym(text: str) -> ReasoningGym:
    name, arguments = _call(text)
    if not name.startswith("rg:"):
        raise Refused(f"{text!r} in a mix. Allowed: terms that begin with rg:.")
    own = {f.name for f in fields(ReasoningGym)} - {"family", "settings"}
    settings = tuple((k, v) for k, v in arguments.items() if k not in own)
    given = {k: v for k, v in arguments.items() if k in own}
    return ReasoningGym(name.removeprefix("rg:"), settings=settings, **given)


def _known(arguments: Mapping[str, Any], allowed: Mapping[str, type]) -> dict[str, Any]:
    """Arguments of a table: which columns, and the rest."""
    columns = {f.name for f in fields(Columns)}
    for name in arguments:
        if name not in columns and name not in allowed:
            raise Refused(f"No argument {name!r} here. {nearest(name, columns | set(allowed))}")
    mapped = Columns(**{k: v for k, v in arguments.items() if k in columns})
    return {"columns": mapped} | {k: v for k, v in arguments.items() if k not in columns}


def _call(text: str) -> tuple[str, dict[str, Any]]:
    """`name(key=literal, …)` as a name and its arguments; without brackets, no arguments."""
    name, bracket, inside = text.partition("(")
    if not bracket:
        return text.strip(), {}
    try:
        call = ast.parse(f"f({inside}", mode="eval").body
        assert isinstance(call, ast.Call), "it begins like one"
        assert not call.args, "positional"
        return name.strip(), {_name(k): _frozen(ast.literal_eval(k.value)) for k in call.keywords}
    except (SyntaxError, ValueError, AssertionError, RecursionError, MemoryError) as error:
        raise Refused(f"{text!r} does not read. Allowed: name(key=literal, …).") from error


def _name(keyword: ast.keyword) -> str:
    if keyword.arg is None:
        raise ValueError("** is not a literal")
    return keyword.arg


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def _top_level(text: str, mark: str) -> list[str]:
    """The pieces of a text between marks that stand outside all brackets."""
    depth, pieces = 0, [""]
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == mark and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += letter
    return [piece.strip() for piece in pieces]
