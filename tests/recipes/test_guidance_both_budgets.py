"""Equal updates and equal tokens: what a run of each budget measures, and the page's tables."""

import pytest

from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.stored_runs import stored_runs
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

RECIPE = load_module_file(ROOT / "recipes" / "guidance" / "both_budgets.py")


def test_methods_differ_in_what_they_drop_and_share_group_size_and_loss():
    methods = RECIPE.METHODS.values()
    assert {method.sampler.group_size for method in methods} == {RECIPE.GROUP_SIZE}
    assert not any("ref" in str(method.requires.signals) for method in methods)


def test_both_budgets_are_the_same_for_a_method_that_drops_nothing():
    found = RECIPE.run(RECIPE.GRPO, seed=100, updates=2)
    assert found["updates"] == found["tokens"]
    assert found["rollouts"] == 2 * 16 * RECIPE.GROUP_SIZE


def test_a_method_that_refills_generates_more_for_as_many_updates():
    found = RECIPE.run(RECIPE.METHODS[RECIPE.FILTER], seed=100, updates=2)
    assert found["rollouts"] > 2 * 16 * RECIPE.GROUP_SIZE


@pytest.mark.parametrize("line", ["verdicts", "means"])
def test_the_tables_of_the_page_are_those_of_the_runs(line):
    folder = ROOT / "docs" / "guidance_shown"
    runs = stored_runs(folder / "both_budgets.jsonl", dict.fromkeys(RECIPE.METHODS), range(8))
    page = (folder / "both_budgets.md").read_text().splitlines()
    if line == "means":
        assert set(paired_table(runs, RECIPE.METRICS, "GRPO").splitlines()) <= set(page)
    else:
        for metric in ("updates", "tokens"):
            tested = {name: runs[name] for name in ("GRPO", RECIPE.FILTER, RECIPE.VSPO)}
            table = RECIPE.sequential_table(tested, metric, "GRPO", RECIPE.DESIGN)
            assert set(table.splitlines()) <= set(page)
