r"""The structure of a mathematical answer: lists, sets, intervals, equations, matrices and scalars.

`parse_structure` turns the text of an answer into nested nodes without evaluating anything, in a
time proportional to its length. A text is one answer or none: nothing is searched for in it.
Scalars are translated to the LaTeX that the math process reads (`math_scalar`).
"""

import re
from collections.abc import Sequence
from typing import Any

from grupo.rewards.math_scalar import parse_scalar
from grupo.rewards.math_text import (
    GREEK,
    closing_bracket,
    normalize,
    split_top_level,
    strip_delimiters,
)

Node = dict[str, Any]  # as JSON: "kind", and the fields of the kind

MAX_DEPTH = 8  # nested lists and brackets; deeper texts are no answers
MAX_ITEMS = 100
ITEM_SEPARATOR = re.compile(r"[,;]")
UNION = re.compile(r"\\cup(?![A-Za-z])")
RATIO = re.compile(r":")
RELATION = re.compile(r"<=|>=|!=|=|<|>")
PLUS_MINUS = re.compile(r"\\(?:pm|mp)(?![A-Za-z])")
CONNECTIVE = re.compile(
    r"\s*,?\s*(?:\\text\{\s*(and|or)\s*\}|(?<![A-Za-z\\])(and|or)(?![A-Za-z]))\s*"
)
THOUSANDS = re.compile(
    r"[+-]?(?:\\?\$ ?)?\d{1,3}(?:,\d{3})+(?:\.\d*)?(?: ?\\?%)?(?: ?\\text\{[^{}]*\}| [a-z]+)?"
)
MATRIX = re.compile(r"\\begin\{([pbvBV]?matrix)\}(.*)\\end\{\1\}", re.DOTALL)
# a name on the left of "=": x, S_{10}, f(x, y), f^{-1}(x), (a, b), \angle ABC, \text{area}
NAME = re.compile(
    r"\([A-Za-z](?:, ?[A-Za-z])+\)"
    rf"|(?:(?:\\angle|\\overline|\\vec)\s*)?\{{?(?:\\(?:{GREEK})|[A-Za-z]{{1,3}}"
    r"|\\text\{[A-Za-z ]+\})\}?"
    r"(?:_(?:\{[\w, ]+\}|\w))?(?:\^\{-1\})?(?:\((?:[A-Za-z](?:,\s*[A-Za-z])*)\))?"
)
WORDS = re.compile(r"[^\W\d_]+(?:[ '-][^\W\d_]+)*")
FLIPPED = {">": "<", ">=": "<="}


def parse_structure(text: str) -> Node:
    r"""The nodes of a text; a text that is no expression is a node of kind "raw".

    >>> parse_structure(r"\boxed{(1, 2]}.")["label"], parse_structure("x = 4")["named"]
    ('(]', True)
    """
    return _parse(normalize(text), 0)


def _parse(text: str, depth: int) -> Node:
    text = strip_delimiters(text)
    if depth > MAX_DEPTH:
        return _raw(text)
    for parse in (_parse_items, _parse_relation, _parse_union, _parse_plus_minus, _parse_enclosed):
        node = parse(text, depth)
        if node is not None:
            return node
    return _parse_words(text) or parse_scalar(text) or _raw(text)


def _raw(text: str) -> Node:
    return {"kind": "raw", "text": "".join(text.split())}


def _group(kind: str, label: str, parts: Sequence[str], depth: int) -> Node:
    """A node of these parts; a raw one if there are too many parts, or an empty one."""
    parts = [part.strip() for part in parts]
    if len(parts) > MAX_ITEMS or not all(parts):
        return _raw(label.join(parts))
    return {"kind": kind, "label": label, "items": [_parse(part, depth + 1) for part in parts]}


def _parse_items(text: str, depth: int) -> Node | None:
    """A list at the top level; its order does not count, as in "x = 1 or x = 2"."""
    if THOUSANDS.fullmatch(text):
        return None
    connectives = {match[1] or match[2] for match in CONNECTIVE.finditer(text)}
    parts = split_top_level(CONNECTIVE.sub(",", text) if connectives else text, ITEM_SEPARATOR)
    if len(parts) < 2:
        return None
    node = _group("unordered", "set", parts, depth)
    if {item["kind"] for item in node.get("items", ())} != {"inequality"}:
        return node
    if connectives == {"and"}:
        conjuncts = [chain for item in node["items"] for chain in item["conjuncts"]]
        return {"kind": "inequality", "conjuncts": conjuncts, "interval": None}
    return node | _any_of(node["items"]) if "or" in connectives else node


def _any_of(items: list[Node]) -> Node:
    """Label of a list of inequalities joined by "or", and the union of its intervals, if any."""
    intervals = [item["interval"] for item in items]
    union = {"kind": "unordered", "label": "union", "items": intervals}
    return {"label": "any of", "interval": union if all(intervals) else None}


def _parse_relation(text: str, depth: int) -> Node | None:
    signs = [match[0] for match in RELATION.finditer(text)]
    sides = split_top_level(text, RELATION)
    if len(sides) < 2:
        return None
    if len(sides) - 1 != len(signs) or len(sides) > MAX_ITEMS or not all(map(str.strip, sides)):
        return _raw(text)
    sides = [side.strip() for side in sides]
    if set(signs) == {"="}:
        return _equation(sides, depth)
    items = [_parse(side, depth + 1) for side in sides]
    chain = {"signs": signs, "items": items}
    interval = _as_interval(sides, signs, depth)
    return {"kind": "inequality", "conjuncts": [chain], "interval": interval}


def _equation(sides: list[str], depth: int) -> Node:
    if NAME.fullmatch(sides[-1]) and not NAME.fullmatch(sides[0]):
        sides = sides[::-1]  # 4 = x
    named = NAME.fullmatch(sides[0]) is not None
    items = [_parse(side, depth + 1) for side in sides]
    name = "".join(sides[0].split()) if named else ""
    return {"kind": "equation", "named": named, "name": name, "items": items}


def _as_interval(sides: list[str], signs: list[str], depth: int) -> Node | None:
    """The interval of "x > 2" or "1 < x <= 2"; None for other inequalities."""
    if set(signs) <= set(FLIPPED):
        sides, signs = sides[::-1], [FLIPPED[sign] for sign in signs[::-1]]
    if not set(signs) <= {"<", "<="}:
        return None
    if len(sides) == 2 and NAME.fullmatch(sides[0]):
        sides, signs = [r"-\infty", *sides], ["<", *signs]
    elif len(sides) == 2:
        sides, signs = [*sides, r"\infty"], [*signs, "<"]
    if len(sides) != 3 or not NAME.fullmatch(sides[1]):
        return None
    label = ("(" if signs[0] == "<" else "[") + (")" if signs[1] == "<" else "]")
    return _group("ordered", label, (sides[0], sides[2]), depth)


def _parse_union(text: str, depth: int) -> Node | None:
    parts = split_top_level(text, UNION)
    return _group("unordered", "union", parts, depth) if len(parts) > 1 else None


def _parse_plus_minus(text: str, depth: int) -> Node | None:
    r"""Both values of "2 \pm 3": all upper signs in the first, all lower signs in the second."""
    if not PLUS_MINUS.search(text):
        return None
    upper = text.replace(r"\pm", "+").replace(r"\mp", "-")
    lower = text.replace(r"\pm", "-").replace(r"\mp", "+")
    return _group("unordered", "set", (upper, lower), depth)


def _parse_enclosed(text: str, depth: int) -> Node | None:
    """A text that is one pair of brackets, a matrix or a ratio."""
    matrix = MATRIX.fullmatch(text)
    if matrix:
        return _parse_matrix(matrix[2], depth)
    parts = split_top_level(text, RATIO)
    if len(parts) > 1:
        return _group("ordered", ":", parts, depth)
    if text.startswith(r"\{") and closing_bracket(text, 1) == len(text) - 1:
        parts = split_top_level(text[2:-2], ITEM_SEPARATOR)
        return _group("unordered", "set", parts, depth) if any(parts) else None
    if text[:1] in ("(", "[", "{") and closing_bracket(text, 0) == len(text) - 1:
        return _parse_brackets(text, depth)
    return None


def _parse_brackets(text: str, depth: int) -> Node:
    parts = split_top_level(text[1:-1], ITEM_SEPARATOR)
    if text[0] == "{":
        return (
            _group("unordered", "set", parts, depth) if parts[1:] else _parse(parts[0], depth + 1)
        )
    if text[0] == "(" and text[-1] == ")" and len(parts) == 1:
        return _parse(parts[0], depth + 1)
    return _group("ordered", text[0] + text[-1], parts, depth)


def _parse_matrix(body: str, depth: int) -> Node:
    rows = [row.split("&") for row in re.split(r"\\\\", body) if row.strip()]
    widths = {len(row) for row in rows}
    if len(widths) != 1:
        return _raw(body)
    label = f"matrix {len(rows)}x{widths.pop()}"
    return _group("ordered", label, [cell for row in rows for cell in row], depth)


def _parse_words(text: str) -> Node | None:
    r"""A text answer, such as \text{Monday}; a plain text of one or two letters is a product."""
    in_text = re.fullmatch(r"\\text\{([^{}]*)\}", text)
    words = in_text[1].strip() if in_text else text
    if WORDS.fullmatch(words) and (re.search(r"[A-Za-z]{3}", words) or not words.isascii()):
        is_constant = re.fullmatch(r"pi|infinity|inf|oo|" + GREEK, words)
        return None if is_constant else {"kind": "words", "text": words.casefold()}
    return None
