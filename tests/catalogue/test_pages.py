"""The documentation pages of the methods, and the table in the terminal."""

import inspect
import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from grupo.catalogue.entries import methods
from grupo.catalogue.fidelity import fidelity_page
from grupo.catalogue.pages import index_page, method_page, method_pages, methods_table
from grupo.catalogue.search import find_entry
from grupo.core.paper import TAGS, Source
from grupo.util.errors import ConfigError
from tests.helpers.paths import ROOT

DOCS = ROOT / "docs" / "methods"


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
