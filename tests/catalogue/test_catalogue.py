"""The catalogue: entries, parsing of methods, the table, and the documentation pages."""

import inspect
import io
import json
import pkgutil
import re
from dataclasses import replace

import pytest
from rich.console import Console

import grupo.methods
from grupo.catalogue import (
    fidelity_page,
    find_entry,
    index_page,
    method_page,
    method_pages,
    methods,
    methods_table,
    parse_method,
    search_entries,
)
from grupo.catalogue.entries import parse_first_line
from grupo.core.errors import ConfigError
from grupo.core.paper import TAGS, Source
from grupo.core.ranges import range_violation
from grupo.method import Method
from grupo.methods.dapo import dapo
from grupo.methods.dr_grpo import dr_grpo
from grupo.methods.grpo import grpo
from tests.helpers.paths import ROOT

DOCS = ROOT / "docs" / "methods"

FILE = """
from grupo.method import Method
from grupo.algo.losses import Clip

mine = Method(loss=Clip(0.1, 0.1))


def custom(limit: int, clip: float = 0.5, *, names: tuple[str, ...] = ()) -> Method:
    return Method(loss=Clip(clip, limit))


def number() -> int:
    return 7
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "my_methods.py"
    path.write_text(FILE)
    return path


def test_every_method_file_has_an_entry():
    files = {module.name for module in pkgutil.iter_modules(grupo.methods.__path__)}
    assert {entry.key for entry in methods()} == files


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


def test_there_are_120_methods_and_each_has_golden_tests():
    assert len(methods()) >= 120
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


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("grpo", grpo()),
        ("grpo()", grpo()),
        ("grpo(kl_coef=0)", grpo(kl_coef=0)),
        ("grpo(4, 0.1)", grpo(4, 0.1)),
        (" dapo(max_length = 64, overlong_buffer=16) ", dapo(64, 16)),
        ("dr_grpo(2, clip_eps=0.3)", dr_grpo(2, clip_eps=0.3)),
    ],
)
def test_text_is_parsed_into_a_method_of_the_library(text, method):
    assert parse_method(text) == method


def test_text_is_parsed_into_a_method_of_a_file(file):
    assert repr(parse_method(f"{file}:mine").loss) == "Clip(clip_low=0.1, clip_high=0.1)"
    assert repr(parse_method(f"{file}:custom(limit=3)").loss) == "Clip(clip_low=0.5, clip_high=3)"
    assert (
        repr(parse_method(f"{file}:custom(3, names=('a:b',))").loss)
        == "Clip(clip_low=0.5, clip_high=3)"
    )
    assert parse_method(f"{file}:mine") == parse_method(f"{file}:mine")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("drgrpo", r"there is no 'drgrpo'. Did you mean 'dr_grpo'\? Allowed: a_grae, ace, .*…"),
        ("gspo(clip_low=-0.1)", "gspo: clip_low: -0.1. Allowed: 0 or more"),
        ("grpo(kl_coef=1e400)", "grpo: kl_coef: inf. Allowed: finite numbers"),
        ("grpo(0)", "grpo: group_size: 0. Allowed: 1 or more"),
        ("clip_cov(drop_fraction=1.5)", "clip_cov: drop_fraction: 1.5. Allowed: 0 to 1"),
        (
            "gdpo(reward_weights=(1.0, -1.0))",
            r"gdpo: reward_weights: \(1.0, -1.0\). Allowed: 0 or more",
        ),
        ("dr_grpo", r"dr_grpo: max_length must be given: dr_grpo\(max_length=\.\.\.\)"),
        ("dapo(64)", r"dapo: overlong_buffer must be given"),
        (
            "dr_grpo(max_lenght=3)",
            r"no argument 'max_lenght'. Did you mean 'max_length'\? Allowed: cl",
        ),
        ("dr_grpo(max_length='3')", "dr_grpo: max_length: '3'. Allowed: a whole number"),
        ("dr_grpo(max_length=3.5)", "dr_grpo: max_length: 3.5. Allowed: a whole number"),
        ("dr_grpo(max_length=True)", "dr_grpo: max_length: True. Allowed: a whole number"),
        ("grpo(1, 2, 3, 4)", "grpo: 4 arguments given. Allowed: group_size, clip_eps, kl_coef"),
        ("grpo(1, group_size=2)", "grpo: 'group_size' is given twice"),
        (
            "grpo(kl_coef=print(1))",
            r"grpo: kl_coef is 'print\(1\)'; numbers, strings and tuples are allowed",
        ),
        ("grpo(**{'kl': 1})", r"grpo: there is no argument '\*\*'"),
        ("grpo(*[1])", r"grpo's argument 1 is '\*\[1\]'"),
        ("grpo(kl_coef=", "cannot read 'grpo"),
        ("", "cannot read ''"),
        ("grpo.x", "neither a name nor name"),
        ("a:b", "cannot read 'a:b'. Allowed: name, name"),
        ("no/such.py:mine", "There is no file"),
    ],
)
def test_text_that_describes_no_method_is_refused(text, message):
    with pytest.raises(ConfigError, match=message):
        parse_method(text)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("mime", r"has no 'mime'. Did you mean 'mine'\? Allowed: custom, mine, number"),
        ("mine(1)", "'mine' in .* of type Method, not a function"),
        ("number", r"'number' must return a Method; it returned 7, of type int"),
        ("custom", r"limit must be given"),
        ("custom(1, 2.0, ('a',))", "3 arguments given. Allowed: limit, clip"),
        (
            "custom(1, names=(1,))",
            r"names: \(1,\). Allowed: a tuple \(…,\) of which each is a string",
        ),
    ],
)
def test_a_file_without_such_a_method_is_refused(file, call, message):
    with pytest.raises(ConfigError, match=message):
        parse_method(f"{file}:{call}")


def test_the_table_fits_100_columns():
    screen = io.StringIO()
    Console(file=screen, width=100).print(methods_table(methods()))
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= 100
    for entry in methods():
        assert any(entry.key in line and entry.authors in line for line in lines)
        assert any((entry.arxiv or entry.venue) in line for line in lines)


def test_a_page_shows_changes_arguments_and_the_call():
    page = method_page(find_entry("dr_grpo"))
    assert "| advantage | `chain(Center(), ScaleByStd(eps=1e-06))` | `Center()` |" in page
    assert "| `max_length` | `int`, 1 or more | required | " in page
    assert "method = dr_grpo(max_length=64)" in page
    assert "https://arxiv.org/abs/2503.20783" in page


def test_a_page_shows_the_meaning_of_arguments_outside_the_formula():
    page = method_page(find_entry("kl_cov"))
    assert "Args:" not in page
    type_and_default = "`float`, 0 or more | `1.0`"
    assert (
        rf"| `kl_coef` | {type_and_default} | weight of \|log R\| (authors' code: 1.0). |" in page
    )


@pytest.mark.parametrize("entry", methods(), ids=lambda entry: entry.key)
def test_every_argument_has_a_meaning(entry):
    assert "Args:" not in entry.formula
    assert list(entry.argument_meanings) == list(inspect.signature(entry.function).parameters)
    assert all(entry.argument_meanings.values())


def test_a_page_shows_its_tags():
    page = method_page(find_entry("gkd"))
    assert "\nTags: [distillation](README.md#tag-distillation).\n" in page


def test_the_index_links_to_every_page():
    index = index_page(methods())
    assert all(f"]({entry.key}.md)" in index for entry in methods())


def test_the_index_lists_the_methods_of_each_tag():
    by_tag = index_page(methods()).partition("## By tag\n")[2].partition("\n## ")[0]
    (critic,) = [line for line in by_tag.splitlines() if 'id="tag-critic"' in line]
    assert re.findall(r"\]\((\w+)\.md\)", critic) == [
        entry.key for entry in methods() if "critic" in entry.tags
    ]
    assert all(f'id="tag-{tag}"' in by_tag for tag in TAGS)


def test_the_committed_pages_are_up_to_date():
    written = {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}
    assert written == method_pages(), "run: make docs"
    fidelity = (DOCS.parent / "fidelity.md").read_text(encoding="utf-8")
    assert fidelity == fidelity_page(), "run: make docs"


def test_the_fidelity_page_has_a_row_of_each_method():
    page = fidelity_page()
    for entry in methods():
        (row,) = re.findall(rf"^\| \[{entry.key}\]\(methods/.*$", page, re.MULTILINE)
        assert row.count(" | ") == 5
        assert (entry.source.kind if entry.source else "not compared yet") in row


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


def test_a_page_marks_sources_other_than_paper_and_code():
    audited = replace(
        find_entry("cispo"),
        source=Source("abstract", "arXiv listing"),
        plan="run.sh: batch 512, minibatch 64",
        missing=("The cold start.",),
        equals_grpo_when="there is one update per step",
    )
    page = method_page(audited)
    assert "* **Not the paper itself**: the abstract alone (arXiv listing).\n" in page
    assert "* Update plan: run.sh: batch 512, minibatch 64.\n" in page
    assert "* The gradient equals that of GRPO, with this KL divergence and mean over" in page
    assert "tokens, when there is one update per step.\n" in page
    assert page.count("Missing: The cold start.") == 1
    assert "Not the paper" not in method_page(replace(audited, source=Source("paper", "eq. 4")))


def test_an_unknown_kind_of_source_is_an_error():
    message = r"Source.kind: 'papers' is no kind of source. Did you mean 'paper'\?"
    with pytest.raises(ConfigError, match=message):
        Source("papers", "eq. 4")
