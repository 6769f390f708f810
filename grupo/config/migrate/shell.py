"""Reads the arguments of a training command in a shell script; nothing is executed."""

import ast
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import yaml

from grupo.config.migrate.settings import OptionValues

ASSIGNMENT = re.compile(r"^\s*(?:export\s+|readonly\s+|local\s+)?([A-Za-z_]\w*)=(.*)$")
# a variable, of which the default may have variables: ${FILES:-$HOME/a.jsonl}, ${RUN:-${HOME}/run}
VARIABLE = re.compile(
    r"\$\{([A-Za-z_]\w*)(?::?-((?:[^{}$]|\$(?!\{)|\$\{[^{}]*\})*))?\}|\$([A-Za-z_]\w*)"
)
ARITHMETIC = re.compile(r"\$\(\(([\w\s+*()/-]+?)\)\)")
HYDRA = re.compile(r"\+{0,2}([A-Za-z_]\w*(?:\.[\w@]+)+)=(.*)", re.DOTALL)
BRANCH_START = re.compile(r"\s*(if|case)\s")
BRANCH_END = re.compile(r"(^|;)\s*(fi|esac)\s*(;|$|#)")
LAUNCHER_FLAGS = ("address", "runtime-env-json", "working-dir", "no-wait")  # of ray
COMPUTED = re.compile(r"\$[({\w]")


def read_hydra_arguments(text: str) -> OptionValues:
    """The arguments `a.b=value` of a script, with the values of variables put in.

    An argument in a branch, `if` or `case`, is taken if there is no other of its name.
    """
    source = OptionValues({})
    in_branches: dict[str, str] = {}
    for words, is_branch in _lines(text):
        for match in filter(None, map(HYDRA.fullmatch, words)):
            if is_branch:
                in_branches.setdefault(match[1], match[2])
            else:
                _set(source, match[1], _parsed(match[2]))
    taken = {name: text for name, text in in_branches.items() if name not in source.values}
    for name, text in taken.items():
        _set(source, name, _parsed(text))
    if taken:
        source.remarks.append(f"set in a branch of the script, if or case: {', '.join(taken)}")
    return source


def read_flags(text: str) -> OptionValues:
    """The arguments `--name value` of a script; a flag without value is True."""
    source = OptionValues({})
    for words, _ in _lines(text):
        starts = [i for i, word in enumerate(words) if word.startswith("--") and len(word) > 2]
        for start, end in pairwise([*starts, len(words)]):
            name, equals, value = words[start].removeprefix("--").partition("=")
            values = [value] * bool(equals) + words[start + 1 : end]
            parsed = [_parsed(word) for word in values if word not in (")", "--")] or [True]
            if name not in LAUNCHER_FLAGS:
                _set(source, name, parsed[0] if len(parsed) == 1 else parsed)
    return source


def _set(source: OptionValues, name: str, value: Any) -> None:
    if isinstance(value, str) and COMPUTED.search(value):
        source.remarks.append(f"{name} = {value[:60]} is no constant")
        value = None
    source.values[name] = value


def _parsed(text: str) -> Any:
    """A value in YAML's notation, as hydra reads it; numbers such as 1e-6 are numbers."""
    try:
        return (
            float(text)
            if re.fullmatch(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+", text)
            else (yaml.safe_load(text) if text else "")
        )
    except (yaml.YAMLError, ValueError):
        return text


def _lines(text: str) -> Iterator[tuple[list[str], bool]]:
    """The words of each line, with variables of the script replaced, and whether it is in a branch.

    A branch sets only variables that are not set yet or empty: which branch runs is not known.
    """
    variables = {"HOME": "~"}
    depth = 0
    for line in re.sub(r"\\\n", " ", text).splitlines():
        depth += bool(BRANCH_START.match(line)) - bool(BRANCH_END.search(line))
        replaced = _replace(line, variables)
        match = ASSIGNMENT.match(replaced)
        words = _split(match[2] if match else replaced)
        if match and len(words) < 2 and not match[2].startswith("("):
            if depth < 1 or not variables.get(match[1]):
                variables[match[1]] = "".join(words)
        else:  # also a command after variables of its environment
            yield words, depth > 0


def _replace(line: str, variables: dict[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1] or match[3]
        if match[2] is None:
            return variables.get(name, match[0])
        return variables.get(name) or VARIABLE.sub(value, match[2])

    def result(match: re.Match[str]) -> str:
        code = re.sub(r"[A-Za-z_]\w*", lambda name: variables.get(name[0], name[0]), match[1])
        return _arithmetic(code)

    return ARITHMETIC.sub(result, VARIABLE.sub(value, line))


def _arithmetic(code: str) -> str:
    """The value of an expression of whole numbers."""
    try:
        return str(_number(ast.parse(code.strip(), mode="eval").body))
    except (SyntaxError, ValueError, ZeroDivisionError):
        return f"$(({code}))"


def _number(node: ast.expr) -> int:
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.BinOp(left, operator, right):
            a, b = _number(left), _number(right)
            match operator:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
                case ast.Div() | ast.FloorDiv():
                    return a // b
    raise ValueError(ast.unparse(node))


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:  # a quote that ends on another line
        return line.split()
