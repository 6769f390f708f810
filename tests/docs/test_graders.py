"""The examples of docs/graders.md run."""

import re

import pytest

from tests.helpers.paths import ROOT

PAGE = (ROOT / "docs" / "graders.md").read_text()
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("code", SNIPPETS)
def test_examples_run(code):
    exec(code, {})


def test_every_section_of_a_reward_has_an_example():
    assert len(SNIPPETS) == 6
