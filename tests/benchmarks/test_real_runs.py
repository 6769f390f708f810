"""The page of the runs of a real model: it is that of its results, and these of its commands."""

from pathlib import Path

import pytest

from benchmarks.real_runs.commands import as_typed, execute
from benchmarks.real_runs.page import page, read_results
from benchmarks.real_runs.sections import SECTIONS
from benchmarks.real_runs.training import MEMORY, STEP, finding_cell, score_cell, seconds_of
from tests.helpers.paths import ROOT

DOCS = ROOT / "docs"
DRY_RUN = """\
memory, estimated: about 4.0 GB at its peak (weights 538 MB), besides the libraries'
time, estimated: about 1,300 s per step with answers of 16 tokens; 1:05:00 in all
"""


def test_the_page_is_that_of_its_results():
    text = (DOCS / "real_runs.md").read_text(encoding="utf-8")
    assert text == page(read_results(DOCS / "real_runs.jsonl"))


def test_every_result_is_of_the_commands_of_its_row():
    results = read_results(DOCS / "real_runs.jsonl")
    assert results
    for (name, row), result in results.items():
        assert tuple(result["commands"]) == SECTIONS[name].measurements[row].commands


def test_the_estimates_are_read_from_the_output_of_a_dry_run():
    output = " ".join(DRY_RUN.split())
    memory, time = MEMORY.search(output), STEP.search(output)
    assert memory
    assert memory.groups() == ("4.0", "GB")
    assert time
    assert time.groups() == ("1,300", "1:05:00")
    assert seconds_of(time[2]) == 3900


def test_cells_by_hand():
    result = {
        "after": {"greedy": [0.664, 0.52, 0.78]},
        "findings": [
            {"severity": "warning", "name": "truncated answers"},
            {"severity": "note", "name": "zero loss"},
            {"severity": "warning", "name": "truncated answers"},
        ],
    }
    assert score_cell("after", "greedy")(result) == "66.4 [52, 78]"
    assert finding_cell(result) == "warning: truncated answers"
    assert finding_cell({"findings": []}) == "none"


@pytest.mark.slow
def test_a_command_that_fails_is_named_with_its_output(tmp_path):
    with pytest.raises(RuntimeError, match=r"grupo doctor 'a b': exit code \d"):
        execute(["doctor", "a b"], Path(tmp_path) / "log")
    assert as_typed(["doctor", "a b"]) == "grupo doctor 'a b'"
