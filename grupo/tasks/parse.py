"""Task sources from text, as given on the command line."""

import ast
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from grupo.tasks.base import TaskSource
from grupo.tasks.columns import Columns
from grupo.tasks.dataset import DatasetTasks
from grupo.tasks.mixture import TaskMixture
from grupo.tasks.python import FromImportPath
from grupo.tasks.reasoning_gym import ReasoningGym
from grupo.util.errors import ConfigError, suggest
from grupo.util.python_text import parse_expression
from grupo.util.user_paths import parse_path

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
    """The task source that a text describes; see `EXAMPLES`. Arguments are Python literals.

    >>> parse_task_source("rg:chain_sum(max_terms=3, size=100)")
    ReasoningGym(family='chain_sum', size=100, seed=0, settings=(('max_terms', 3),), \
template='{question}')
    >>> [weight for _, weight in parse_task_source("rg:chain_sum*2+rg:gcd").sources]
    [2.0, 1.0]
    """
    text = text.strip()
    if not text:
        raise ConfigError(f"The task source is empty. Allowed: {', '.join(EXAMPLES)}.")
    if text.startswith("rg:"):
        return _parse_mixture(text)
    name, arguments = _parse_call(text)
    if ":" in name and not parse_path(name).exists():
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
            f"{term!r}: the weight after * is not a number. Allowed: a number."
        ) from error


def _parse_reasoning_gym(text: str) -> ReasoningGym:
    name, arguments = _parse_call(text)
    if not name.startswith("rg:"):
        raise ConfigError(f"{text!r} in a mixture. Allowed: terms that begin with rg:.")
    own = {f.name for f in fields(ReasoningGym)} - {"family", "settings"}
    settings = tuple((k, v) for k, v in arguments.items() if k not in own)
    own_arguments = {k: v for k, v in arguments.items() if k in own}
    return ReasoningGym(name.removeprefix("rg:"), settings=settings, **own_arguments)


def _table_arguments(arguments: Mapping[str, Any], allowed: Mapping[str, type]) -> dict[str, Any]:
    """The arguments of a table's source, with the names of columns as a `Columns`."""
    column_fields = {f.name for f in fields(Columns)}
    for name in arguments:
        if name not in column_fields and name not in allowed:
            suggestion = suggest(name, column_fields | set(allowed))
            raise ConfigError(f"There is no argument {name!r}. {suggestion}")
    columns = Columns(**{k: v for k, v in arguments.items() if k in column_fields})
    return {"columns": columns} | {k: v for k, v in arguments.items() if k not in column_fields}


def _parse_call(text: str) -> tuple[str, dict[str, Any]]:
    """`name(key=literal, …)` as a name and its arguments; without brackets there are none."""
    name, bracket, inside = text.partition("(")
    if not bracket:
        return text.strip(), {}
    try:
        call = parse_expression(f"f({inside}")
        assert isinstance(call, ast.Call), "the text begins as a call"
        assert not call.args, "positional arguments"
        arguments = {_keyword_name(k): _freeze(ast.literal_eval(k.value)) for k in call.keywords}
        return name.strip(), arguments
    except (SyntaxError, ValueError, TypeError, AssertionError) as error:
        raise ConfigError(f"{text!r} is not valid. Allowed: name(key=literal, …).") from error


def _keyword_name(keyword: ast.keyword) -> str:
    if keyword.arg is None:
        raise ValueError("** is not a literal")
    return keyword.arg


def _freeze(value: Any) -> Any:
    return tuple(map(_freeze, value)) if isinstance(value, list | tuple) else value


def _split_top_level(text: str, separator: str) -> list[str]:
    """Split a text at the separators outside of all brackets."""
    depth = 0
    pieces = [""]
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == separator and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += letter
    return [piece.strip() for piece in pieces]
