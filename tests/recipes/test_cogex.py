"""Rules, tasks and the comparison of the recipe of CoGEX."""

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT


@pytest.fixture(scope="module")
def recipe():
    return load_module_file(ROOT / "recipes" / "pipelines" / "cogex.py")


@pytest.mark.parametrize(
    ("cue", "words"),
    [
        ("begin", "owl"),
        ("after", "fox"),
        ("before", "hen"),
        ("end", "bee"),
        ("turn", "bee hen fox owl"),
    ],
)
def test_rules_return_the_words_that_they_name(recipe, cue, words):
    assert recipe.carried_out(cue, ["owl", "fox", "hen", "bee"]) == words


def test_the_toy_model_learns_right_rules_at_the_stated_share_and_carries_them_out(recipe):
    examples = [recipe.example(number) for number in range(0, 3000)]
    rules = {program: cue for cue, (program, _) in recipe.RULES.items()}
    written = [
        rules[str(task.reference_answer).removesuffix(" .")] == str(task.prompt).split()[0]
        for task in examples[::3]
    ]
    assert sum(written) / 1000 == pytest.approx(recipe.RIGHT, abs=0.06)  # 4 standard errors
    for task in examples[1::3]:
        program, _, result = str(task.reference_answer).partition(" : ")
        _, _, listed = str(task.prompt).partition(" : ")
        words = listed.removesuffix(" ?\n").split()
        assert result == f"{recipe.carried_out(rules[program], words)} ."


def test_a_chain_and_an_answer_with_a_program_have_the_same_result(recipe):
    assert recipe.result("take the last word : bee .") == recipe.result("bee .") == "bee"


def test_a_chat_model_must_name_the_last_word_alone(recipe):
    task = Task("t", "Q", "bee")

    def reward(text):
        return recipe.names_last(task, Rollout((("Q", Response((1,), (0.0,), text=text)),)))

    assert reward("The last word is Bee.") == 1
    assert reward("owl, bee") == reward("none") == 0


def test_the_program_is_compared_with_the_smallest_vote_of_at_least_as_many_tokens(recipe):
    tokens = {"one program": 50.0, "vote of 2 chains": 30.0, "vote of 4 chains": 60.0}
    tokens |= {"vote of 8 chains": 120.0, "vote of 16 chains": 240.0}
    runs = {name: [{"tokens": value}] for name, value in tokens.items()}
    assert recipe.equal_vote(runs) == "vote of 4 chains"
    runs["one program"] = [{"tokens": 1e6}]
    assert recipe.equal_vote(runs) == "vote of 16 chains"


@pytest.mark.slow
def test_all_arms_of_a_seed_run_on_a_barely_trained_model(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr(recipe, "TESTED", 2)
    monkeypatch.setattr(recipe, "VOTES", (2,))
    model = recipe.save_model(tmp_path, steps=30)
    found = recipe.arms_of_seed(tmp_path, str(model), 3)
    assert set(found) == {"one program", "a chain", "vote of 2 chains"}
    one = found["one program"]
    assert one["tokens"] == pytest.approx(one["own"] + one["search"] / 2)
