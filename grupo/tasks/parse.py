"""Tasks by name, as the command line is given them."""

import ast
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from grupo.core.errors import ConfigError, suggest
from grupo.tasks.base import TaskSource
from grupo.tasks.columns import Columns
from grupo.tasks.dataset import DatasetTasks
from grupo.tasks.mixture import TaskMixture
from grupo.tasks.python import FromImportPath
from grupo.tasks.reasoning_gym import ReasoningGym

EXAMPLES = (
    "rg:chain_sum(min_terms=2,max_terms=3)",
    "rg:chain_sum*2+rg:gcd",
    "rows.jsonl",
    "rows.parquet(prompt='question')",
    "a folder or hub name",
    "module:function",
    "file.py:function",
)


def parse_task_source(text: str) -> TaskSource:
    """The tasks that a text names; arguments are literals.

    >>> parse_task_source("rg:chain_sum_solutions(max_terms=3, size=100)")
    ReasoningGym(family='chain_sum', size=100, seed=0, settings=(('max_terms', 3),), \
template='{question}')
    >>> [weight for _, weight in parse_task_source("rg:chain_sum*2+rg:gcd").sources]
    [2.0, 1.0]
    """
    text = text.strip()
    if not text:
        raise ConfigError(f"No tasks are named. Allowed: {', '.join(EXAMPLES)}.")
    if text.startswith("rg:"):
        return _parse_mixture(text)
    name, arguments = _parse_call(text)
    if ":" in name and not Path(name).exists():
        return FromImportPath(name, **_table_arguments(arguments, {"columns": Columns}))
    return DatasetTasks(name, **_table_arguments(arguments, {"split": str, "config": str}))


def _parse_mixture(text: str) -> TaskSource:
    terms = [_parse_term(term) for term in _split_top_level(text, "+")]
    return terms[0][0] if [w for _, w in terms] == [1.0] else TaskMixture(tuple(terms))


def _parse_term(term: str) -> tuple[TaskSource, float]:
    source, *weight = _split_top_level(term, "*")
    try:
        return _parse_reasoning_gym(source), float(*weight) if weight else 1.0
    except (TypeError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(
            f"{term!r}: what follows * is not a weight. Allowed: a number."
        ) from error


def _parse_reasoning_gym(text: str) -> ReasoningGym:
    name, arguments = _parse_call(text)
    if not name.startswith("rg:"):
        raise ConfigError(f"{text!r} in a mix. Allowed: terms that begin with rg:.")
    own = {f.name for f in fields(ReasoningGym)} - {"family", "settings"}
    settings = tuple((k, v) for k, v in arguments.items() if k not in own)
    given = {k: v for k, v in arguments.items() if k in own}
    return ReasoningGym(name.removeprefix("rg:"), settings=settings, **given)


def _table_arguments(arguments: Mapping[str, Any], allowed: Mapping[str, type]) -> dict[str, Any]:
    """Arguments of a table: which columns, and the rest."""
    columns = {f.name for f in fields(Columns)}
    for name in arguments:
        if name not in columns and name not in allowed:
            raise ConfigError(f"No argument {name!r} here. {suggest(name, columns | set(allowed))}")
    mapped = Columns(**{k: v for k, v in arguments.items() if k in columns})
    return {"columns": mapped} | {k: v for k, v in arguments.items() if k not in columns}


def _parse_call(text: str) -> tuple[str, dict[str, Any]]:
    """`name(key=literal, …)` as a name and its arguments; without brackets, no arguments."""
    name, bracket, inside = text.partition("(")
    if not bracket:
        return text.strip(), {}
    try:
        call = ast.parse(f"f({inside}", mode="eval").body
        assert isinstance(call, ast.Call), "it begins like one"
        assert not call.args, "positional"
        return name.strip(), {
            _keyword_name(k): _freeze(ast.literal_eval(k.value)) for k in call.keywords
        }
    except (SyntaxError, ValueError, AssertionError, RecursionError, MemoryError) as error:
        raise ConfigError(f"{text!r} does not read. Allowed: name(key=literal, …).") from error


def _keyword_name(keyword: ast.keyword) -> str:
    if keyword.arg is None:
        raise ValueError("** is not a literal")
    return keyword.arg


def _freeze(value: Any) -> Any:
    return tuple(map(_freeze, value)) if isinstance(value, list | tuple) else value


def _split_top_level(text: str, separator: str) -> list[str]:
    """The pieces of a text between marks that stand outside all brackets."""
    depth, pieces = 0, [""]
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == separator and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += letter
    return [piece.strip() for piece in pieces]
