"""How often methods learn from a step's batch: equally often, unless each is to keep its own."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from grupo.algo.minibatches import SingleUpdate, Updates
from grupo.compare import (
    Comparison,
    Steps,
    manifest,
    recipes_with_methods,
    summary_text,
    table_formats,
    tables,
)
from grupo.compare.experiment import run_specs
from grupo.compare.run import estimate_cost
from grupo.compare.update_budget import (
    FixedUpdates,
    describe_all_updates,
    parse_update_rule,
    per_method,
    shared,
)
from grupo.compare.validate import validate_comparison
from grupo.core.errors import ConfigError
from grupo.methods.gspo import gspo


@pytest.fixture
def both(recipe) -> Comparison:
    """GRPO, which learns once from a batch, and GSPO, which by itself does so four times."""
    methods = {"grpo": recipe.method.replace(updates=SingleUpdate()), "gspo": gspo(group_size=4)}
    return Comparison(recipes_with_methods(recipe, methods), Steps(2))


def plans(comparison: Comparison) -> dict[str, object]:
    """By which plan the cells of each recipe are trained."""
    return {cell.name: cell.recipe.method.updates for cell in run_specs(comparison, Path("out"))}


def test_all_learn_by_the_baselines_plan_unless_told_otherwise(both):
    assert plans(both) == {"grpo": SingleUpdate(), "gspo": SingleUpdate()}
    other = replace(both, baseline="gspo")
    assert plans(other) == dict.fromkeys(("grpo", "gspo"), Updates(minibatches=4))


def test_each_keeps_its_own_or_all_learn_by_a_given_one(both):
    assert plans(replace(both, updates=per_method)) == {
        "grpo": SingleUpdate(),
        "gspo": Updates(minibatches=4),
    }
    given = replace(both, updates=FixedUpdates(Updates(epochs=2)))
    assert plans(given) == dict.fromkeys(("grpo", "gspo"), Updates(epochs=2))


def test_nothing_else_of_a_method_is_changed(both):
    (mine,) = (cell for cell in run_specs(both, Path("out")) if str(cell) == "gspo, seed 0")
    assert mine.recipe.method == gspo(group_size=4).replace(updates=SingleUpdate())


def test_the_command_line_says_it_in_a_word_or_as_a_plan():
    assert [parse_update_rule("equal"), parse_update_rule("own")] == [shared, per_method]
    assert parse_update_rule("Updates(2, minibatches=4)") == FixedUpdates(Updates(2, 4))


@pytest.mark.parametrize("text", ["eqal", "4", "OnePass", "Updates(0.5)", "Updates(x=2)"])
def test_another_word_or_plan_is_refused(text):
    with pytest.raises(ConfigError, match="updates: "):
        parse_update_rule(text)


def test_recipes_that_differ_in_their_updates_alone_are_not_made_the_same(both):
    four = both.recipes["grpo"].replace(
        method=both.recipes["grpo"].method.replace(updates=Updates(4))
    )
    recipes = {"once": both.recipes["grpo"], "four times": four}
    with pytest.raises(ConfigError, match="equal makes 'once' and 'four times' the same"):
        validate_comparison(replace(both, recipes=recipes))
    validate_comparison(replace(both, recipes=recipes, updates=per_method))
    validate_comparison(
        replace(both, recipes={"once": four, "again": four})
    )  # they were the same before


@pytest.mark.parametrize("updates", [shared, per_method, FixedUpdates(Updates(3))])
def test_it_comes_back_from_the_folder(both, updates, tmp_path):
    one = replace(both, updates=updates, seeds=(0,), baseline="grpo")
    manifest.save_comparison(one, tmp_path)
    assert manifest.load_comparison(tmp_path) == one


def test_a_folder_that_says_nothing_of_it_holds_runs_that_kept_their_own(both, tmp_path):
    manifest.save_comparison(both, tmp_path)
    path = tmp_path / manifest.MANIFEST_FILE
    data = json.loads(path.read_text())
    path.write_text(json.dumps({name: x for name, x in data.items() if name != "updates"}))
    assert manifest.load_comparison(tmp_path).updates is per_method


def test_one_pace_is_said_once_and_several_with_whose_they_are(both):
    assert describe_all_updates(both.held) == "1 update a step by SingleUpdate()"
    # a step has two prompts: of four minibatches two are left
    assert describe_all_updates(replace(both, updates=per_method).held) == (
        "1 update a step by SingleUpdate(): grpo; 2 updates a step by Updates(epochs=1, minibatches=4):"
        " gspo"
    )


def test_the_caption_of_every_table_says_what_was_held_equal(both, measured):
    result = measured({"grpo": [0.2, 0.4], "gspo": [0.3, 0.4]})
    result.comparison.recipes.update(both.recipes)
    said = summary_text.caption(result)
    assert (
        said == "2 recipes, 2 seeds, 1 task set; 3 steps each; 1 update a step by SingleUpdate()."
    )
    assert said in summary_text.report_markdown(result, [])
    assert rf"\caption{{{said}}}" in table_formats.latex(tables.main_table(result), said)


def test_a_method_that_was_kept_from_its_own_plan_is_named(both, measured):
    result = measured({"grpo": [0.2, 0.4], "gspo": [0.3, 0.4]})
    result.comparison.recipes.update(both.recipes)
    said = [
        line for line in summary_text.caveats(result) if line.startswith("Updates were held equal")
    ]
    assert "gspo, Updates(epochs=1, minibatches=4)." in said[0]
    assert not any("updates together" in line for line in summary_text.conclusions(result))


def test_where_each_keeps_its_own_the_conclusion_says_that_it_is_of_both(both, measured):
    result = measured({"grpo": [0.2, 0.4], "gspo": [0.3, 0.4]}, updates=per_method)
    result.comparison.recipes.update(both.recipes)
    assert summary_text.conclusions(result)[-1] == (
        "A difference of these is that of the method and of its updates together, for grpo has"
        " 1 update a step by SingleUpdate(): gspo, 2 updates a step by Updates(epochs=1, minibatches=4)."
        " `--updates-per-step equal` takes them apart."
    )
    assert not any(line.startswith("Updates were held") for line in summary_text.caveats(result))


def test_what_a_comparison_will_cost_is_said_with_its_updates(both, tmp_path):
    found = estimate_cost(replace(both, seeds=1), tmp_path / "new", workers=2)
    assert found.lines()[1] == "1 update a step by SingleUpdate()"
    assert {cell.recipe.method.updates for cell in found.remaining_runs} == {SingleUpdate()}
