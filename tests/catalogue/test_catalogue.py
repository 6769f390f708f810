"""The entries of the catalogue."""

import ast
import inspect
import json
import pkgutil

import pytest

import grupo.methods
from grupo.catalogue.entries import methods, parse_first_line
from grupo.catalogue.parse import parse_method
from grupo.catalogue.search import find_entry, search_entries
from grupo.core.ranges import range_violation
from grupo.method import Method
from grupo.methods.dapo import dapo
from grupo.util.errors import ConfigError
from tests.helpers.paths import ROOT


def test_every_method_file_has_an_entry():
    files = {module.name for module in pkgutil.iter_modules(grupo.methods.__path__)}
    assert {entry.key for entry in methods()} == files


@pytest.mark.parametrize("module", [entry.key for entry in methods()])
def test_a_method_file_begins_with_its_function_and_ends_with_its_record(module):
    body = ast.parse((ROOT / f"grupo/methods/{module}.py").read_text()).body
    first = next(x for x in body if isinstance(x, (ast.FunctionDef, ast.ClassDef)))
    assert isinstance(first, ast.FunctionDef)
    assert first.returns is not None
    assert ast.unparse(first.returns) == "Method"
    assert isinstance(body[-1], ast.Assign)
    assert ast.unparse(body[-1].targets[0]) == "PAPER"


def test_a_method_file_without_a_record_is_one_error_that_names_it(monkeypatch):
    monkeypatch.delattr("grupo.methods.dapo.PAPER")
    with pytest.raises(ConfigError, match=r"methods/dapo\.py: PAPER: None\. .* PAPER = Paper\("):
        methods.__wrapped__()


def test_an_entry_has_the_facts_of_its_file():
    entry = find_entry("dapo")
    assert (entry.name, entry.authors, entry.year, entry.arxiv) == (
        "DAPO",
        "Yu et al.",
        2025,
        "2503.14476",
    )
    assert entry.claim == "informative groups and equal weight for all tokens"
    assert entry.title == "DAPO: An Open-Source LLM Reinforcement Learning System at Scale"
    assert entry.formula.startswith("Clip-higher")
    assert entry.method == dapo(max_length=64, overlong_buffer=16)


def test_the_changed_slots_are_computed():
    assert find_entry("dr_grpo").changes == (
        ("advantage", "Center()"),
        ("aggregation", "ConstantLength(max_length=64)"),
        ("updates", "Updates(epochs=1, minibatches=8)"),
    )


@pytest.mark.parametrize("entry", methods(), ids=lambda entry: entry.key)
def test_every_entry_is_complete(entry):
    assert entry.title
    assert entry.checked
    assert entry.changes
    assert json.loads(json.dumps(entry.to_data()))["changes"] == dict(entry.changes)
    assert isinstance(entry.method, Method)


@pytest.mark.parametrize("text", ["2503.14476", "arXiv:2503.14476", "dapo", "DAPO"])
def test_a_method_is_found_by_name_and_by_arxiv_number(text):
    assert find_entry(text).key == "dapo"


def test_names_of_methods_are_unique():
    names = [name for e in methods() for name in {e.key, e.name.lower()}]
    assert sorted(set(names)) == sorted(names)
    assert all(find_entry(entry.key) is entry for entry in methods())


def test_an_arxiv_number_finds_every_method_of_the_paper():
    assert [entry.key for entry in search_entries("2507.18071")] == ["gspo", "gspo_token"]


def test_every_method_has_golden_tests():
    assert all({"golden", "properties"} <= set(entry.checked) for entry in methods())
    assert all(entry.arxiv or entry.venue for entry in methods())
    tested = {path.name for path in (ROOT / "tests" / "methods").glob("test_*.py")}
    three = {"grpo", "dr_grpo", "dapo"}  # in test_golden.py
    assert {e.key for e in methods() if f"test_{e.key}.py" not in tested} <= three


@pytest.mark.parametrize("entry", methods(), ids=lambda entry: entry.key)
def test_every_default_is_within_its_range(entry):
    arguments = inspect.signature(entry.function, eval_str=True).parameters.values()
    assert not [
        a
        for a in arguments
        if a.default is not a.empty and range_violation(a.default, a.annotation)
    ]


def test_an_unknown_method_is_refused_with_the_nearest_name():
    with pytest.raises(
        ConfigError, match=r"'dapp' is not among the methods. Did you mean 'dapo'\?"
    ):
        find_entry("dapp")


def test_a_malformed_first_line_is_refused():
    with pytest.raises(
        ConfigError, match=r"methods/x\.py: its first line is 'X by Doe'; it must be"
    ):
        parse_first_line("X by Doe", "x")


def without_kl(entry):
    """The method of the entry's example with `kl_coef` 0."""
    name, _, arguments = entry.example.partition("(")
    others = [
        argument
        for argument in arguments.rstrip(")").split(", ")
        if argument and not argument.startswith("kl_coef=")
    ]
    return parse_method(f"{name}({', '.join([*others, 'kl_coef=0.0'])})")


KL_PENALISED = [e for e in methods() if "kl_coef" in inspect.signature(e.function).parameters]


@pytest.mark.parametrize("entry", KL_PENALISED, ids=lambda entry: entry.key)
def test_a_kl_coef_of_0_requires_no_reference_policy(entry):
    signals = without_kl(entry).requires.all_signals
    assert not [name for name in signals if name.endswith("@ref")]
