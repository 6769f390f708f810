"""The examples of docs/environments.md run."""

import re

import pytest

from grupo.config.validate import SelfChecking
from grupo.core.component import walk
from tests.helpers.paths import ROOT

PAGE = (ROOT / "docs" / "environments.md").read_text()


def run_example(section):
    """Execute the snippet of a section; returns its variables."""
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.S | re.M)
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    variables = {"__name__": "example"}
    exec(code, variables)
    return variables


def check(env):
    for part in walk(env):
        if isinstance(part, SelfChecking):
            part.check()


def test_the_gymnasium_example_is_a_valid_environment_with_tasks():
    pytest.importorskip("gymnasium")
    example = run_example("Gymnasium")
    check(example["env"])
    assert len(example["tasks"].load()) == 500
    assert "Keep the pole up" in example["tasks"].load()[0].prompt
