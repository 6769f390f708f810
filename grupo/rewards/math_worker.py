"""The program of a math process: it reads pairs as lines of JSON and writes lines of JSON.

It runs as a script and imports nothing of grupo, so that it starts fast and stays small. Answers
are nodes as of `grupo.rewards.math_syntax`; sympy decides whether two scalars are equal.
"""

import json
import logging
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import sympy
from latex2sympy2_extended.latex2sympy2 import ConversionConfig, latex2sympy
from sympy.core.relational import Relational

Node = dict[str, Any]

MEMORY_LIMIT = 4 << 30  # bytes of address space
RECURSION_LIMIT = 2_000
SIGNIFICANT_DIGITS = 6  # of a decimal number that may stand for the value that it rounds
PRECISION = 80  # decimal digits of numeric comparisons
RELATIVE_ERROR = 1e-50
NUM_POINTS = 6  # values of the variables at which expressions are compared
MIN_POINTS = 3  # at which both expressions must have a value


def equal_nodes(expected: Node, answer: Node) -> bool:
    """True if the answer equals the expected one; its form may not hold a second answer."""
    if answer["kind"] == "equation" and expected["kind"] != "equation":
        values = answer["items"][1:] if answer["named"] else answer["items"]
        return all(equal_nodes(expected, value) for value in values)
    if expected["kind"] == "equation" and answer["kind"] != "equation":
        return expected["named"] and equal_nodes(expected["items"][-1], answer)
    if "interval" not in expected:
        answer = answer.get("interval") or answer
    elif "interval" not in answer:
        expected = expected["interval"] or expected
    if expected["kind"] != answer["kind"]:
        return False
    return COMPARISONS[expected["kind"]](expected, answer)


def _equal_texts(expected: Node, answer: Node) -> bool:
    return expected["text"] == answer["text"] != ""


def _equal_ordered(expected: Node, answer: Node) -> bool:
    return (
        expected["label"] == answer["label"]
        and len(expected["items"]) == len(answer["items"])
        and all(map(equal_nodes, expected["items"], answer["items"]))
    )


def _equal_unordered(expected: Node, answer: Node) -> bool:
    return expected["label"] == answer["label"] and _match_items(
        expected["items"], answer["items"], equal_nodes
    )


def _match_items(expected: list[Any], answers: list[Any], equal: Callable[..., bool]) -> bool:
    """True if every expected item has an answer of its own, and no answer is left."""
    if len(expected) != len(answers):
        return False
    remaining = list(answers)
    for item in expected:
        match = next((i for i, other in enumerate(remaining) if equal(item, other)), None)
        if match is None:
            return False
        del remaining[match]
    return True


def _equal_equations(expected: Node, answer: Node) -> bool:
    if expected["named"] and answer["named"] and expected["name"] == answer["name"]:
        return all(equal_nodes(expected["items"][-1], value) for value in answer["items"][1:])
    sides = [_scalars(node["items"]) for node in (expected, answer)]
    if any(len(pair) != 2 for pair in sides):
        return False
    (a, b), (c, d) = sides
    return _constant_ratio(a - b, c - d) is not None


def _equal_inequalities(expected: Node, answer: Node) -> bool:
    pairs = [
        [pair for chain in node["conjuncts"] for pair in _sorted_pairs(chain)]
        for node in (expected, answer)
    ]
    return all(pairs) and _match_items(pairs[0], pairs[1], _equal_pairs)


def _equal_pairs(expected: tuple[str, Any], answer: tuple[str, Any]) -> bool:
    ratio = _constant_ratio(expected[1], answer[1])
    return expected[0] == answer[0] and ratio is not None and (ratio > 0 or expected[0] == "!=")


def _sorted_pairs(chain: Node) -> Iterator[tuple[str, Any]]:
    """Sign and right minus left side of each comparison, with ">" turned into "<"."""
    sides = _scalars(chain["items"])
    for sign, left, right in zip(chain["signs"], sides, sides[1:], strict=False):
        yield sign.replace(">", "<"), left - right if ">" in sign else right - left


def _scalars(nodes: list[Node]) -> list[Any]:
    """The finite expressions of scalars; empty if a node is none."""
    values = [parse_latex(node["latex"]) for node in nodes if node["kind"] == "scalar"]
    finite = [v for v in values if _is_expression(v) and not v.is_infinite]
    return finite if len(finite) == len(nodes) else []


def _equal_scalars(expected: Node, answer: Node) -> bool:
    if expected["unit"] and answer["unit"] and expected["unit"] != answer["unit"]:
        return False
    a, b = parse_latex(expected["latex"]), parse_latex(answer["latex"])
    if a is None or b is None:
        return expected["text"] == answer["text"]
    return equal_values(a, b) or _is_rounded(answer, b, a) or _is_rounded(expected, a, b)


def _is_rounded(node: Node, decimal: Any, exact: Any) -> bool:
    """True for a decimal number of enough digits that rounds, or cuts off, the exact value."""
    if node["significant"] < SIGNIFICANT_DIGITS or node["decimals"] < 0:
        return False
    if not getattr(exact, "is_number", False) or not exact.is_real:
        return False
    scaled = sympy.N(exact, PRECISION) * 10 ** node["decimals"]
    digits = decimal * 10 ** node["decimals"]
    if not scaled.is_finite:
        return False
    return digits in (sympy.floor(scaled + sympy.Rational(1, 2)), sympy.Integer(scaled))


@lru_cache(maxsize=256)
def parse_latex(latex: str) -> Any:
    """The sympy expression, with i as the imaginary unit; None if the text is no expression."""
    config = ConversionConfig(interpret_as_mixed_fractions=False, lowercase_symbols=False)
    try:
        value = latex2sympy(
            latex, is_real=True, normalization_config=None, conversion_config=config
        )
    except (MemoryError, RecursionError):
        raise
    except Exception:  # the parser raises plain exceptions, and many kinds of others
        return None
    if not isinstance(value, sympy.Basic) or isinstance(value, Relational):
        return None
    return value.subs(sympy.Symbol("i", real=True), sympy.I)


def equal_values(a: Any, b: Any) -> bool:
    """True if two expressions are equal for all values of their variables.

    Numbers are evaluated even if they are identical: a reference answer that cannot be evaluated
    then fails in the comparison with itself.
    """
    if not _is_expression(a) or not _is_expression(b):
        return a == b
    if a is sympy.nan or a is sympy.zoo:
        return False
    if (a.is_Rational and b.is_Rational) or a.is_infinite or b.is_infinite:
        return a == b
    results = [_close(x, y) for x, y in _values_at_points(a, b)]
    known = [result for result in results if result is not None]
    if False in known or len(known) >= (MIN_POINTS if a.free_symbols | b.free_symbols else 1):
        return False not in known
    return a == b or sympy.simplify(a - b) == 0


def _is_expression(value: Any) -> bool:
    # a type guard would narrow to a class of which sympy declares few attributes
    return isinstance(value, sympy.Expr)


def _values_at_points(a: Any, b: Any) -> Iterator[tuple[Any, Any]]:
    """Values of both expressions at several values of their variables, positive and negative."""
    symbols = sorted(a.free_symbols | b.free_symbols, key=str)
    for point in range(NUM_POINTS if symbols else 1):
        values = {
            symbol: sympy.Rational((-1) ** (point + index) * (41 + 12 * point), 29 + 7 * index)
            for index, symbol in enumerate(symbols)
        }
        yield a.evalf(PRECISION, subs=values), b.evalf(PRECISION, subs=values)


def _close(x: Any, y: Any) -> bool | None:
    """True if two values agree in nearly all digits; None if that cannot be decided."""
    if not _is_numeric(x) or not _is_numeric(y):
        return None
    if x == 0 or y == 0:
        return True if x == y == 0 else None  # a relative error is meaningless
    return bool(abs(x - y) <= RELATIVE_ERROR * max(abs(x), abs(y)))


def _is_numeric(value: Any) -> bool:
    """True for a finite real or complex number without anything left to evaluate."""
    atoms_are_numbers = all(atom.is_Number or atom is sympy.I for atom in value.atoms())
    return atoms_are_numbers and not value.has(sympy.Function) and value.is_finite is True


def _constant_ratio(a: Any, b: Any) -> Any:
    """b / a if it is the same nonzero real number for all values of the variables, else None."""
    if not (a.free_symbols | b.free_symbols):
        return None
    ratios = [y / x for x, y in _values_at_points(a, b) if x.is_number and y.is_number and x != 0]
    if len(ratios) < MIN_POINTS or not ratios[0].is_real or ratios[0] == 0:
        return None
    return ratios[0] if all(_close(ratios[0], ratio) for ratio in ratios) else None


COMPARISONS: dict[str, Callable[[Node, Node], bool]] = {
    "raw": _equal_texts,
    "words": _equal_texts,
    "ordered": _equal_ordered,
    "unordered": _equal_unordered,
    "equation": _equal_equations,
    "inequality": _equal_inequalities,
    "scalar": _equal_scalars,
}


def compare(expected: Node, answer: Node) -> dict[str, Any]:
    """{"equal": bool}, or {"error": message} if the comparison failed."""
    try:
        return {"equal": equal_nodes(expected, answer)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:500]}


def main() -> None:
    """Compare pairs until the parent closes the pipe."""
    # prints of libraries must not be read as replies
    replies = sys.stdout
    sys.stdout = sys.stderr
    logging.disable()
    _bound_memory()
    print("ready", file=replies, flush=True)
    for line in sys.stdin:
        pair = json.loads(line)
        _end_after(2 * pair["time_limit"] + 1)
        reply = compare(pair["reference_answer"], pair["answer"])
        print(json.dumps(reply), file=replies, flush=True)
        _end_after(0)


def _bound_memory() -> None:
    sys.setrecursionlimit(RECURSION_LIMIT)
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))


def _end_after(seconds: float) -> None:
    """End this process after `seconds` (0: never), in case the parent process is gone by then."""
    if sys.platform != "win32":
        import signal

        signal.setitimer(signal.ITIMER_REAL, seconds)


if __name__ == "__main__":
    main()
