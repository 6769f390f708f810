"""The structure of answers: any text has one, in a short time and with a bounded depth."""

import json
import random
import time

import pytest

from grupo.rewards.math_equal import MAX_CHARS
from grupo.rewards.math_syntax import MAX_DEPTH, MAX_ITEMS, parse_structure

FRAGMENTS = (
    *"(){}[]$,;=<>^_%:|&*`-+!°€. \n1xe",
    *(r"\{", r"\}", r"\(", r"\)", r"\[", r"\]", r"\boxed{", r"\text{", r"\pm ", r"\cup ", r"\\"),
    *("<=", "and", " or ", "1.5", "1,000", r"\frac", r"\%", "percent", " cm", "**", r"\sqrt"),
    *(r"\begin{pmatrix}", r"\end{pmatrix}", r"\in ", r"^\circ", r"\$", "E5", "f(x)=", r"\text{a}"),
)


def depth(node):
    children = node.get("items", ())
    return 1 + max(map(depth, children), default=0)


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_repeated_fragments_are_parsed_in_a_short_time(fragment):
    for text in (
        fragment * MAX_CHARS,
        "1" + fragment * MAX_CHARS,
        fragment * (MAX_CHARS - 1) + "1",
    ):
        start = time.perf_counter()
        parse_structure(text[:MAX_CHARS])
        assert time.perf_counter() - start < 2.0


def test_any_text_has_a_structure_that_can_be_sent():
    generator = random.Random(0)
    for _ in range(1000):
        text = "".join(generator.choices(FRAGMENTS, k=generator.randint(1, 60)))
        node = parse_structure(text)
        assert json.loads(json.dumps(node)) == node
        assert depth(node) <= MAX_DEPTH + 2


def test_deeper_nesting_and_longer_lists_are_no_answers():
    assert parse_structure("(" * 3 + "4" + ")" * 3)["kind"] == "scalar"
    assert parse_structure("(" * 20 + "4" + ")" * 20)["kind"] == "raw"
    assert parse_structure(", ".join("4" * MAX_ITEMS))["kind"] == "unordered"
    assert parse_structure(", ".join("4" * (MAX_ITEMS + 1)))["kind"] == "raw"


@pytest.mark.parametrize(
    ("text", "kind", "label"),
    [
        ("(1, 2)", "ordered", "()"),
        ("[1, 2)", "ordered", "[)"),
        ("1, 2", "unordered", "set"),
        (r"\{1, 2\}", "unordered", "set"),
        (r"(1,2)\cup(3,4)", "unordered", "union"),
        ("x < 1 or x > 2", "unordered", "any of"),
        (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "ordered", "matrix 2x2"),
        ("2:3", "ordered", ":"),
    ],
)
def test_brackets_and_connectives_decide_whether_order_counts(text, kind, label):
    node = parse_structure(text)
    assert (node["kind"], node["label"]) == (kind, label)


@pytest.mark.parametrize(
    ("text", "latex", "unit"),
    [
        ("1,000", "1000", ""),
        ("2.50", r"\frac{250}{100}", ""),
        (r"50\%", r"\frac{50}{100}", ""),
        ("3 km", "3", "km"),
        (r"3 \text{ kilometers}", "3", "km"),
        (r"7 \text{ cm}^2", "7", "cm^2"),
        ("$7", "7", "dollar"),
        ("x^(n+1)", "x^{n+1}", ""),
        (r"2\frac12", r"(2+\frac{1}{2})", ""),
    ],
)
def test_scalars_are_exact_and_without_units(text, latex, unit):
    node = parse_structure(text)
    assert (node["kind"], node["latex"], node["unit"]) == ("scalar", latex, unit)


@pytest.mark.parametrize(
    "text", ["lambda: 4!!", "4 4", "4 hundred", r"\neq 4", "__import__('os')", "4?"]
)
def test_texts_that_are_no_single_expression_are_not_scalars(text):
    assert parse_structure(text)["kind"] != "scalar"
