"""Commands choose values for a model: `grupo train`, and as it does `compare` and `eval`."""

import json
from pathlib import Path

import pytest
from transformers import LlamaConfig

from grupo.cli import chosen_defaults
from grupo.cli.build_experiment import ExperimentArgs
from grupo.cli.build_recipe import RecipeArgs
from grupo.cli.chosen_defaults import ChosenRecipe, recipe_with_defaults
from grupo.config import defaults
from tests.helpers import tiny_lm
from tests.helpers.fast_cases import fast_cases

ROOM = "policy.max_new_tokens = 32: the room in a context of 64 tokens"


@pytest.fixture
def compared(grupo, home, monkeypatch, capsys):
    """Lengths of answers by method, and the lines on standard error."""
    monkeypatch.chdir(home)

    def build(*methods: str, fields: tuple[str, ...] = ()) -> tuple[dict[str, int], list[str]]:
        comparison = ExperimentArgs(
            fields,
            methods,
            tasks=("tasks.jsonl",),
            rewards=("rewards.py:digits",),
            model="model",
            budget="steps=1",
        )(Path("c"))
        lengths = {name: r.policy.max_new_tokens for name, r in comparison.recipes.items()}
        return lengths, capsys.readouterr().err.splitlines()

    return build


def test_compared_methods_have_the_answer_length_that_fits_the_model(compared):
    assert compared("grpo", "rloo") == ({"grpo": 32, "rloo": 32}, [ROOM])


def test_compared_methods_share_the_answer_length_that_one_of_them_is_made_for(compared):
    lengths, lines = compared("grpo", "long=dapo(max_length=16, overlong_buffer=4)")
    assert lengths == {"grpo": 16, "long": 16}
    reason = "the length of an answer that long is made for"
    assert lines == [f"policy.max_new_tokens = 16: {reason}"]


def test_a_length_that_only_some_methods_get_is_printed_with_their_names(compared):
    methods = [f"dapo(max_length={length}, overlong_buffer=4)" for length in (8, 16)]
    lengths, lines = compared(*(f"d{i}={text}" for i, text in enumerate(methods)))
    assert lengths == {"d0": 8, "d1": 16}
    assert [line.partition(":")[0] for line in lines] == ["d0", "d1"]


def test_a_length_that_is_given_applies_to_all_methods(compared):
    fields = ("--policy.max-new-tokens", "5")
    assert compared("grpo", "rloo", fields=fields) == ({"grpo": 5, "rloo": 5}, [])


def test_eval_of_a_model_prints_the_answer_length_that_it_chose(grupo):
    options = ("--tasks", "tasks.jsonl", "--reward", "rewards.py:digits")
    code, _, err = grupo("eval", "--model", "model", *options, "--count", "2", "--attempts", "1")
    assert (code, err.splitlines()) == (0, [ROOM])


@pytest.fixture
def sums(home, tmp_path, monkeypatch):
    """A file of 1,000 sums; the models of the working directory count as no toys."""
    monkeypatch.chdir(home)
    file = tmp_path / "sums.jsonl"
    rows = [{"prompt": f"{i}+{i}=", "answer": str(2 * i)} for i in range(1000)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for module in (chosen_defaults, defaults):
        monkeypatch.setattr(module, "TOY_PARAMETERS", 0)
    return str(file)


def chosen(tasks: str, *fields: tuple[str, str], eval_tasks: str = "") -> ChosenRecipe:
    """The recipe of `grupo train` with a small model."""
    args = RecipeArgs("", "", "model", tasks, eval_tasks, ("rewards.py:digits",), fields)
    return recipe_with_defaults(args)


def test_a_long_run_holds_a_tenth_of_the_tasks_out(sums):
    recipe = chosen(sums)
    assert (recipe.recipe.eval_tasks, len(recipe.eval_tasks), len(recipe.tasks)) == (100, 100, 900)
    assert [choice.field for choice in recipe.choices].count("eval_tasks") == 1
    assert recipe.recipe.evaluation.attempts == 8


@pytest.mark.slow
def test_a_short_run_holds_fewer_tasks_out_and_trains_on_the_others(sums):
    recipe = chosen(sums, ("max_steps", "2"))
    assert (recipe.recipe.eval_tasks, len(recipe.eval_tasks), len(recipe.tasks)) == (50, 50, 950)
    assert recipe.recipe.evaluation.attempts == 4
    assert {"eval_tasks", "evaluation.attempts"} <= {choice.field for choice in recipe.choices}
    assert recipe.lengths.held_out == 50


def test_held_out_tasks_that_the_user_chose_stay(sums):
    fields = (("max_steps", "2"), ("evaluation.attempts", "3"))
    recipe = chosen(sums, *fields, eval_tasks="70")
    assert (recipe.recipe.eval_tasks, recipe.recipe.evaluation.attempts) == (70, 3)
    assert not {"eval_tasks", "evaluation.attempts"} & {choice.field for choice in recipe.choices}


@pytest.mark.slow
def test_the_choice_is_the_same_each_time(sums):
    assert chosen(sums).recipe == chosen(sums).recipe


@pytest.mark.parametrize(
    ("template", "expected"),
    fast_cases(
        1,
        [
            ("", 512),
            (tiny_lm.TEMPLATE, 64),
            (tiny_lm.TEMPLATE + "{% if enable_thinking %}<think>{% endif %}", 512),
        ],
    ),
    ids=["none", "chat", "reasoning"],
)
def test_a_chat_model_answers_sums_briefly(sums, tmp_path, template, expected):
    LlamaConfig(**tiny_lm.WIDE | {"max_position_embeddings": 2048}).save_pretrained(tmp_path)
    tokenizer = tiny_lm.tokenizer()
    tokenizer.chat_template = template or None
    tokenizer.save_pretrained(tmp_path)
    args = RecipeArgs(model=str(tmp_path), tasks=sums, rewards=("rewards.py:digits",))
    assert recipe_with_defaults(args).recipe.policy.max_new_tokens == expected
