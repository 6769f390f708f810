"""`grupo papers`: table, JSON, kinds and claims that nothing shows."""

import io
import json
import subprocess
import sys

from rich.console import Console

from grupo.catalogue.paper_table import papers_table, totals
from grupo.catalogue.papers import PaperRecord, papers
from grupo.core.paper import Paper, Source

RECORDS = (
    PaperRecord("grupo/methods/a.py", Paper("A", catalogue=("a", "b"), checked=("golden",))),
    PaperRecord("grupo/methods/b.py", Paper("B", shown=("docs/claims.md#padded",))),
    PaperRecord(
        "recipes/c.py",
        Paper(
            "C",
            kind="pipeline",
            catalogue=("c",),
            source=Source("code", "x"),
            shown=("docs/pipelines_shown.md#raif",),
        ),
    ),
)


def printed(records, width=80):
    screen = io.StringIO()
    Console(file=screen, width=width).print(papers_table(records))
    return [line.rstrip() for line in screen.getvalue().splitlines()]


def test_json_has_all_fields_of_all_papers(grupo):
    code, out, err = grupo("papers", "--json")
    assert (code, err) == (0, "")
    data = json.loads(out)
    assert [item["file"] for item in data] == [record.file for record in papers()]
    (gspo,) = [item for item in data if item["file"] == "grupo/methods/gspo.py"]
    assert gspo["kind"] == "method"
    assert gspo["source"]["kind"] == "paper"
    assert gspo["checked"] == ["golden", "properties", "reference", "run"]
    assert gspo["level"] == "small environment"
    assert {"title", "catalogue", "shown", "missing", "deviations"} <= set(gspo)


def test_one_paper_is_listed_by_its_name(grupo):
    code, out, _ = grupo("papers", "gspo", "--json")
    assert code == 0
    assert [item["file"] for item in json.loads(out)] == ["grupo/methods/gspo.py"]
    code, out, err = grupo("papers", "gpso")
    assert (code, out) == (2, "")
    assert "paper: 'gpso' is not among the papers. Did you mean 'gspo'? Allowed: " in err


def test_kinds_and_claims_that_nothing_shows_are_selected(grupo):
    def files(*arguments):
        return {item["file"] for item in json.loads(grupo("papers", "--json", *arguments)[1])}

    records = papers()
    methods = {record.file for record in records if record.paper.kind == "method"}
    not_shown = {record.file for record in records if not record.paper.shown}
    assert files("--kind", "method") == methods
    assert files("--not-shown") == not_shown
    assert files("--kind", "method", "--not-shown") == methods & not_shown
    assert files("--kind", "method") | files("--kind", "policy") <= files()


def test_a_kind_without_papers_is_counted(grupo):
    assert not [record for record in papers() if record.paper.kind == "benchmark"]
    code, out, _ = grupo("papers", "--kind", "benchmark")
    assert code == 0
    assert out.splitlines()[0].split() == ["papers", "0"]


def test_an_unknown_kind_is_refused_with_the_nearest_one(grupo):
    code, out, err = grupo("papers", "--kind", "polcy")
    assert (code, out) == (2, "")
    assert "--kind: 'polcy' is no kind of paper. Did you mean 'policy'? Allowed: benchmark" in err


def test_the_table_has_the_papers_by_kind():
    assert printed(RECORDS) == [
        "paper      catalogue  evidence",
        "method",
        "a          a          no source: golden",
        "           b          formula only",
        "b                     no source: not checked",
        "                      small environment",
        "                      docs/claims.md#padded",
        "pipeline",
        "recipes/c  c          code: not checked",
        "                      language model made on the spot",
        "                      docs/pipelines_shown.md#raif",
    ]


def test_the_table_of_all_papers_fits_80_columns():
    lines = printed(papers())
    assert max(map(len, lines)) <= 80
    for record in papers():
        assert any(line.startswith(record.name[:30]) for line in lines)
        assert all(any(row in line for line in lines) for row in record.paper.catalogue)


def test_totals_count_kinds_rows_and_shown_claims():
    assert totals(RECORDS) == [
        "papers               3 (method 2, pipeline 1)",
        "with a shown claim   2",
        "evidence             real model 0, language model made on the spot 1, small environment 1,"
        " formula only 1",
        "rows of a catalogue  3, of which 1 have a shown claim",
    ]


def test_the_command_imports_no_torch():
    command = [sys.executable, "-X", "importtime", "-m", "grupo", "papers"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "grupo.catalogue.papers" in imported
    assert imported & {"torch", "transformers", "grupo.methods", "grupo.catalogue.entries"} == set()
    assert done.stdout.splitlines()[0].split() == ["paper", "catalogue", "evidence"]
