"""The language check passes on the package and fails on planted examples of every rule."""

import subprocess
import sys

import pytest

from tests.helpers.paths import ROOT

CHECK = ROOT / "tools" / "check_language.py"


def check(*folders):
    """Exit code and printed lines of the check."""
    result = subprocess.run(
        [sys.executable, CHECK, *folders], capture_output=True, text=True, check=False
    )
    assert result.stderr == ""
    return result.returncode, result.stdout.splitlines()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def said(): ...", "the name 'said' says no noun"),
        ("def mean(told): ...", "the name 'told' says no noun"),
        ("_heard = 1", "the name '_heard' says no noun"),
        ("class Voice: ...", "the name 'Voice' says no noun"),
        ("self.blame = 1", "the name 'blame' says no noun"),
        ("class Action: ...", "the name 'Action' is 'Response' in the glossary"),
        ("def f(stop_gradient): ...", "the name 'stop_gradient' is 'surrogate_gradient' in"),
        ("class RecipeFile: ...", "the name 'RecipeFile' is 'StoredRecipe' in the glossary"),
        ("async def single_action(): ...", "the name 'single_action' is 'single_response' in"),
        ('"""What a policy generates."""', "the docstring begins with 'What'"),
        ('def f():\n    """Those of a group."""', "the docstring begins with 'Those'"),
        ('class A:\n    """Whoever scores."""', "the docstring begins with 'Whoever'"),
        ("x = 1  # nobody reads it", "'nobody' in prose"),
        ('"""A policy that was told a task."""', "'told' in prose"),
    ],
)
def test_a_planted_violation_is_found(tmp_path, source, message):
    (tmp_path / "planted.py").write_text(source + "\n")
    code, lines = check(tmp_path)
    assert code == 1
    assert any(f"planted.py:1: {message}" in line or message in line for line in lines), lines


def test_a_class_name_used_twice_is_found(tmp_path):
    (tmp_path / "a.py").write_text("class Batch: ...\n")
    (tmp_path / "b.py").write_text("class Batch: ...\nclass _Private: ...\n")
    (tmp_path / "c.py").write_text("class _Private: ...\n")
    code, lines = check(tmp_path)
    assert code == 1
    assert len(lines) == 1
    assert "the class name 'Batch' is not unique" in lines[0]


def test_standard_names_and_strings_for_models_pass(tmp_path):
    (tmp_path / "good.py").write_text(
        '"""Mean reward of each group."""\n\nPROMPT = "Nobody told you the answer."\nlogp = 0.0\n'
    )
    assert check(tmp_path) == (0, [])
