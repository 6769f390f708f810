"""examples/first_run.ipynb is committed without outputs, and every cell runs."""

import re

import nbformat
import pytest

from tests.helpers.notebooks import execute, output_text
from tests.helpers.paths import ROOT

FILE = ROOT / "examples" / "first_run.ipynb"
NOTEBOOK = nbformat.read(FILE, as_version=4)
CODE = [cell.source for cell in NOTEBOOK.cells if cell.cell_type == "code"]
SAVED = "25 // resumed.recipe.save_every * resumed.recipe.save_every"
SCORES = "held_out = run.summary['held_out']\n[held_out[when]['sampled'] for when in held_out]"


def test_the_file_is_valid_and_has_no_outputs():
    nbformat.validate(NOTEBOOK)
    assert set(NOTEBOOK.metadata) == {"kernelspec", "language_info"}
    for cell in NOTEBOOK.cells:
        assert not cell.metadata
        assert cell.cell_type == "markdown" or (cell.execution_count, cell.outputs) == (None, [])


def test_every_link_has_a_target():
    text = "\n".join(cell.source for cell in NOTEBOOK.cells if cell.cell_type == "markdown")
    targets = re.findall(r"\]\(([^)#:]+)\)", text)
    assert len(targets) >= 5
    assert [target for target in targets if not (FILE.parent / target).is_file()] == []


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """The executed cells, without a network, in a folder of the test."""
    folder = tmp_path_factory.mktemp("first_run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        patch.setenv("HF_HUB_OFFLINE", "1")
        return execute([*CODE, SAVED, SCORES], folder)


def cell_with(cells, text):
    return next(cell for cell in cells if text in cell.source)


@pytest.mark.slow
def test_the_policy_learns_and_the_display_shows_it(cells):
    page = output_text(cell_with(cells, "run = train(recipe)"), "text/html")
    assert '<progress value="40" max="40"' in page
    before, after = eval(output_text(cells[-1]))
    assert before < 0.2
    assert after > 0.7


@pytest.mark.slow
def test_the_groups_of_the_first_and_last_step_are_shown(cells):
    first, last = (output_text(cell_with(cells, f"groups(step={n})")) for n in (1, 40))
    for table in (first, last):
        assert len({*re.findall(r"^larger of \d \d ", table, re.MULTILINE)}) == 16
    assert first != last


@pytest.mark.slow
def test_the_interrupted_run_ends_with_the_rewards_of_the_whole_one(cells):
    assert "interrupted" in output_text(cell_with(cells, "class Interruption"))
    assert output_text(cell_with(cells, "resumed = resume(")).endswith("True")
    assert output_text(cells[-2]) == "20"  # the last step before the interruption that was saved


@pytest.mark.slow
def test_the_comparison_is_a_table_with_both_methods(cells):
    table = output_text(cell_with(cells, "run_comparison("), "text/html")
    assert table.count("2 of 2") == 2
    assert "dr_grpo" in table
    assert "inconclusive" in table
