"""Results of queries are compared by their values: cases by hand."""

import pytest

from grupo.envs.sql import is_ordered, same_rows


def test_rows_are_compared_as_multisets():
    assert same_rows([(1,), (2,), (1,)], [(2,), (1,), (1,)], in_order=False)
    assert not same_rows([(1,), (2,)], [(2,), (1,), (1,)], in_order=False)
    assert not same_rows([(1,), (2,), (2,)], [(2,), (1,), (1,)], in_order=False)


def test_rows_are_compared_as_sequences_in_order():
    assert same_rows([(1,), (2,)], [(1,), (2,)], in_order=True)
    assert not same_rows([(2,), (1,)], [(1,), (2,)], in_order=True)


@pytest.mark.parametrize(
    ("found", "expected", "is_same"),
    [
        (None, None, True),
        (None, 0, False),
        (None, "", False),
        (1, 1.0, True),
        ("1", 1, False),
        ("a", "A", False),
        (b"a", "a", False),
        (0.1 + 0.2, 0.3, True),  # another order of a sum
        (0.3, 0.3001, False),
        (1 / 3, 0.333333, False),
        (0.0, -0.0, True),
        (12345678901, 12345678902, False),
        (12345678901, 12345678901.0, True),
        (9007199254740993, 9007199254740992, False),  # 2^53 + 1, which no float holds
        (float("inf"), float("inf"), True),
    ],
)
def test_values_are_compared_by_type_and_number(found, expected, is_same):
    assert same_rows([(found, 1)], [(expected, 1)], in_order=False) is is_same


def test_the_order_of_columns_counts():
    assert not same_rows([(1, "a")], [("a", 1)], in_order=False)


@pytest.mark.parametrize(
    ("query", "ordered"),
    [
        ("SELECT a FROM t ORDER BY a", True),
        ("select a from t\norder\n by a limit 3", True),
        ("WITH x AS (SELECT 1) SELECT * FROM x ORDER BY 1", True),
        ("SELECT a FROM (SELECT a FROM t ORDER BY a)", False),
        ("SELECT row_number() OVER (ORDER BY a) FROM t", False),
        ("SELECT 'x) order by (' FROM t", False),
        ('SELECT "order by" FROM t -- order by a', False),
        ("SELECT a /* ORDER BY a", False),
        ("SELECT a FROM [order by]", False),
    ],
)
def test_only_the_query_itself_has_an_order(query, ordered):
    assert is_ordered(query) is ordered
