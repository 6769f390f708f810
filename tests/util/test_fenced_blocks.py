"""Blocks between fences, as the pattern of Markdown's blocks finds them."""

import re
import time
from itertools import product

import pytest

from grupo.util.fenced_blocks import fenced_blocks

PATTERN = re.compile(r"^```(?:python|py)?[ \t]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
LINES = ("```", "```python ", "```c", "a", " ```", "```\t")


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_blocks_are_those_of_a_pattern_that_backtracks(count):
    for lines in product(LINES, repeat=count):
        for end in ("", "\n"):
            text = "\n".join(lines) + end
            assert fenced_blocks(text, ("python", "py")) == PATTERN.findall(text), text


def test_blocks_that_do_not_end_take_linear_time():
    start = time.perf_counter()
    assert fenced_blocks("```python\n" * 100_000, ("python",)) == []
    assert time.perf_counter() - start < 5.0
