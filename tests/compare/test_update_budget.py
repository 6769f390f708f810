"""How often methods learn from a step's batch: equally often, unless each is to keep its own."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from grupo.algo.minibatches import OnePass, Passes
from grupo.compare import (
    Comparison,
    Steps,
    manifest,
    methods_on,
    summary_text,
    table_formats,
    tables,
)
from grupo.compare.experiment import cells
from grupo.compare.run import planned
from grupo.compare.update_budget import By, equal, own, paces, read
from grupo.compare.validate import check
from grupo.core.errors import Refused
from grupo.methods.gspo import gspo


@pytest.fixture
def both(recipe) -> Comparison:
    """GRPO, which learns once from a batch, and GSPO, which by itself does so four times."""
    methods = {"grpo": recipe.method.but(plan=OnePass()), "gspo": gspo(group=4)}
    return Comparison(methods_on(recipe, methods), Steps(2))


def plans(comparison: Comparison) -> dict[str, object]:
    """By which plan the cells of each recipe are trained."""
    return {cell.name: cell.recipe.method.plan for cell in cells(comparison, Path("out"))}


def test_all_learn_by_the_baselines_plan_unless_told_otherwise(both):
    assert plans(both) == {"grpo": OnePass(), "gspo": OnePass()}
    other = replace(both, baseline="gspo")
    assert plans(other) == dict.fromkeys(("grpo", "gspo"), Passes(minibatches=4))


def test_each_keeps_its_own_or_all_learn_by_a_given_one(both):
    assert plans(replace(both, updates=own)) == {"grpo": OnePass(), "gspo": Passes(minibatches=4)}
    given = replace(both, updates=By(Passes(epochs=2)))
    assert plans(given) == dict.fromkeys(("grpo", "gspo"), Passes(epochs=2))


def test_nothing_else_of_a_method_is_changed(both):
    (mine,) = (cell for cell in cells(both, Path("out")) if str(cell) == "gspo, seed 0")
    assert mine.recipe.method == gspo(group=4).but(plan=OnePass())


def test_the_command_line_says_it_in_a_word_or_as_a_plan():
    assert [read("equal"), read("own")] == [equal, own]
    assert read("Passes(2, minibatches=4)") == By(Passes(2, 4))


@pytest.mark.parametrize("text", ["eqal", "4", "OnePass", "Passes(0.5)", "Passes(x=2)"])
def test_another_word_or_plan_is_refused(text):
    with pytest.raises(Refused, match="updates: "):
        read(text)


def test_recipes_that_differ_in_their_updates_alone_are_not_made_the_same(both):
    four = both.recipes["grpo"].but(method=both.recipes["grpo"].method.but(plan=Passes(4)))
    recipes = {"once": both.recipes["grpo"], "four times": four}
    with pytest.raises(Refused, match="equal makes 'once' and 'four times' the same"):
        check(replace(both, recipes=recipes))
    check(replace(both, recipes=recipes, updates=own))
    check(replace(both, recipes={"once": four, "again": four}))  # they were the same before


@pytest.mark.parametrize("updates", [equal, own, By(Passes(3))])
def test_it_comes_back_from_the_folder(both, updates, tmp_path):
    one = replace(both, updates=updates, seeds=(0,), baseline="grpo")
    manifest.write(one, tmp_path)
    assert manifest.read(tmp_path) == one


def test_a_folder_that_says_nothing_of_it_holds_runs_that_kept_their_own(both, tmp_path):
    manifest.write(both, tmp_path)
    path = tmp_path / manifest.FILE
    data = json.loads(path.read_text())
    path.write_text(json.dumps({name: x for name, x in data.items() if name != "updates"}))
    assert manifest.read(tmp_path).updates is own


def test_one_pace_is_said_once_and_several_with_whose_they_are(both):
    assert paces(both.held) == "1 update a step by OnePass()"
    # a step has two prompts: of four minibatches two are left
    assert paces(replace(both, updates=own).held) == (
        "1 update a step by OnePass(): grpo; 2 updates a step by Passes(epochs=1, minibatches=4):"
        " gspo"
    )


def test_the_caption_of_every_table_says_what_was_held_equal(both, measured):
    result = measured({"grpo": [0.2, 0.4], "gspo": [0.3, 0.4]})
    result.comparison.recipes.update(both.recipes)
    said = summary_text.caption(result)
    assert said == "2 recipes, 2 seeds, 1 task set; 3 steps each; 1 update a step by OnePass()."
    assert said in summary_text.report(result, [])
    assert rf"\caption{{{said}}}" in table_formats.latex(tables.main(result), said)


def test_a_method_that_was_kept_from_its_own_plan_is_named(both, measured):
    result = measured({"grpo": [0.2, 0.4], "gspo": [0.3, 0.4]})
    result.comparison.recipes.update(both.recipes)
    said = [
        line for line in summary_text.cautions(result) if line.startswith("Updates were held equal")
    ]
    assert "gspo, Passes(epochs=1, minibatches=4)." in said[0]
    assert not any("updates together" in line for line in summary_text.concluded(result))


def test_where_each_keeps_its_own_the_conclusion_says_that_it_is_of_both(both, measured):
    result = measured({"grpo": [0.2, 0.4], "gspo": [0.3, 0.4]}, updates=own)
    result.comparison.recipes.update(both.recipes)
    assert summary_text.concluded(result)[-1] == (
        "A difference of these is that of the method and of its updates together, for grpo has"
        " 1 update a step by OnePass(): gspo, 2 updates a step by Passes(epochs=1, minibatches=4)."
        " `--updates equal` takes them apart."
    )
    assert not any(line.startswith("Updates were held") for line in summary_text.cautions(result))


def test_what_a_comparison_will_cost_is_said_with_its_updates(both, tmp_path):
    found = planned(replace(both, seeds=1), tmp_path / "new", workers=2)
    assert found.lines()[1] == "1 update a step by OnePass()"
    assert {cell.recipe.method.plan for cell in found.left} == {OnePass()}
