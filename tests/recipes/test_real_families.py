"""The families of a real model: deterministic tasks, distinct prompts, and rewards by hand."""

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

import pytest

from grupo.cli.build_recipe import load_recipe
from grupo.core.serialization import from_data, to_data
from grupo.core.types import Response, Rollout, Task
from grupo.evidence.survey import TaskFamily
from grupo.recipe import Recipe
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

FOLDER = ROOT / "recipes" / "real"
TRAINING: Any = load_module_file(FOLDER / "training.py")
FAMILIES: Mapping[str, TaskFamily] = TRAINING.FAMILIES
NEEDED = {  # packages of the extra `survey`
    "capitals": "countryinfo",
    "currency_codes": "countryinfo",
    "positive_sentence": "vaderSentiment",
    "negative_sentence": "vaderSentiment",
    "other_language": "py3langid",
}


def columns_of(*named: tuple[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {"instruction_id_list": [n for n, _ in named], "kwargs": [k for _, k in named]}


FOUR_WORDS = ("length_constraints:number_words", {"num_words": 4, "relation": "at least"})
TWO_WORDS = [
    ("length_constraints:number_words", {"num_words": 2, "relation": relation})
    for relation in ("at least", "at most")
]
TWO_SENTENCES = [
    ("length_constraints:number_sentences", {"num_sentences": 2, "relation": relation})
    for relation in ("at least", "at most")
]
NO_E = (
    "keywords:letter_frequency",
    {"letter": "e", "let_frequency": 1, "let_relation": "less than"},
)
PARIS = columns_of(("keywords:existence", {"keywords": ["Paris"]}))
EURO = columns_of(("keywords:existence", {"keywords": ["EUR"]}))
FOX_OWL = columns_of(("keywords:existence", {"keywords": ["fox", "owl"]}))
ADULTS = "SELECT name FROM people WHERE age > 30"
# reference answer, columns, right answers, wrong answers
BY_HAND: Mapping[str, tuple[str | None, dict[str, Any], list[str], list[str]]] = {
    "sums_1_digit": ("7", {}, ["7", "5 + 2 = 7."], ["8", "seven", ""]),
    "sums_2_digits": ("125", {}, ["40 + 85 = 125"], ["40 + 85 = 115", "125 is 40 + 85"]),
    "sums_3_digits": ("1360", {}, ["1,360", "The sum is 1360."], ["1,306", "136"]),
    "sums_3_terms": ("39", {}, ["16 + 15 + 8 = 39"], ["16 + 15 + 8 = 31 + 9"]),
    "differences": ("9", {}, ["34 - 25 = 9", "= 9"], ["-9", "34-25 = 11"]),
    "products": ("36", {}, ["12 * 3 = 36"], ["12 * 3", "360"]),
    "larger_number": ("96", {}, ["96", "The larger number is 96."], ["30", "96 or 30"]),
    "sorted_numbers": (
        "4, 31, 35",
        {},
        ["4, 31, 35", "Sorted: [4, 31, 35]", "4 31 and 35"],
        ["4, 35, 31", "4, 31"],
    ),
    "claimed_sums": ("no", {}, ["No.", "no, 180"], ["Yes", "Wrong"]),
    "letters_of_a_word": ("2", {}, ['There are 2 letters "e".', "2"], ["3", "two"]),
    "words_of_a_sentence": ("4", {}, ["4 words"], ["5"]),
    "sorted_words": ("dance, olive, uncle", {}, ["Dance, olive, uncle."], ["olive, dance, uncle"]),
    "reversed_word": ("yenoh", {}, ["yenoh", 'The word is "yenoh".'], ["honey", "yenho"]),
    "copied_sentence": (
        "the old bridge falls",
        {},
        ["The old bridge falls.", 'Here it is: "the old bridge falls"'],
        ["the old bridge", "The old bridge falls today."],
    ),
    "capitals_of_a_sentence": (
        "THE OLD BRIDGE FALLS",
        {},
        ["THE OLD BRIDGE FALLS", "Here it is: THE OLD BRIDGE FALLS."],
        ["The old bridge falls", "THE OLD BRIDGE"],
    ),
    "last_word": ("alone", {}, ["alone", 'The last word is "alone".'], ["The wizard laughs alone"]),
    "first_letters": ("tob", {}, ["T, O, B", "tob", "The letters are: t o b"], ["bot", "the old"]),
    "lower_case": (
        None,
        columns_of(("change_case:english_lowercase", {}), FOUR_WORDS),
        ["the old bridge is quiet."],
        ["The old bridge is quiet.", "a bridge"],
    ),
    "exact_words": (None, columns_of(*TWO_WORDS), ["Old stone."], ["Old", "An old bridge"]),
    "exact_sentences": (
        None,
        columns_of(*TWO_SENTENCES),
        ["It is old. It stands."],
        ["It is old.", "It is. It was. It will be."],
    ),
    "keywords": (None, FOX_OWL, ["The owl saw a fox."], ["The owl saw foxes.", "An owl."]),
    "without_e": (
        None,
        columns_of(NO_E, FOUR_WORDS),
        ["A dragon is on a ship"],
        ["The dragon", "A"],
    ),
    "json_keys": (
        None,
        {"keys": ["color", "owner"]},
        ['{"owner": "Ann", "color": "red"}', '```json\n{"owner": 1, "color": 2}\n```'],
        ['{"owner": "Ann"}', 'Here: {"owner": "Ann", "color": "red"}', "color, owner"],
    ),
    "positive_sentence": (
        None,
        {"tone": "positive"},
        ["What a wonderful, happy garden!"],
        ["The garden is green today.", "A terrible, ugly garden.", "Wonderful!"],
    ),
    "negative_sentence": (
        None,
        {"tone": "negative"},
        ["I hate this terrible, ugly garden."],
        ["What a wonderful, happy garden!", "The garden is green today."],
    ),
    "other_language": (
        None,
        {"code": "fr"},
        ["Le vieux pont est très beau."],
        ["The old bridge is very beautiful.", "Die alte Brücke ist sehr schön.", "Oui."],
    ),
    "capitals": ("Paris", PARIS, ["The capital is Paris."], ["Lyon", "Parisian"]),
    "currency_codes": ("EUR", EURO, ["EUR (Euro)"], ["Euro", "USD"]),
    "opposites": ("cold", {}, ["Cold.", 'The opposite of hot is "cold".'], ["hot", "warm"]),
    "package_summaries": (
        "Pretty-print tabular data",
        {},
        ["Pretty print tabular data.", "A library to pretty-print tabular data"],
        ["This is a Python package.", ""],
    ),
    "sql": (
        ADULTS,
        {},
        [ADULTS, "```sql\nselect NAME from people where age >= 31 order by age;\n```"],
        [
            "SELECT name FROM people",
            "SELECT name FROM people WHERE age >= 30",
            "SELECT name, age FROM people WHERE age > 30",
            "SELECT nothing FROM nowhere",
            "DROP TABLE people",
            "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x FROM t) SELECT x FROM t",
            "",
        ],
    ),
}
GYM: Mapping[str, tuple[str, str]] = {  # a right form of the reference answer, a wrong answer
    "leg_counting": ("There are {} legs.", "There are 3 legs."),
    "simple_equations": ("m = {}", "m = 4711"),
    "family_relationships": ("{}", "neighbour"),
    "syllogism": ("{}, it does.", "Perhaps."),
    "needle_haystack": ("{}.", "Nobody"),
}


def skip_without_package(name: str) -> None:
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])


def score(family: TaskFamily, task: Task, text: str) -> bool:
    rollout = Rollout((("?", Response((1,), (0.0,), text=text)),))
    (value,) = family.reward(task, [rollout])
    return value >= family.min_reward


def test_every_family_has_answers_by_hand():
    assert {*BY_HAND, *GYM} == set(FAMILIES)
    assert len(FAMILIES) >= 30


@pytest.mark.parametrize("name", BY_HAND)
def test_right_answers_score_and_wrong_ones_do_not(name):
    skip_without_package(name)
    answer, columns, right, wrong = BY_HAND[name]
    task = Task("k", "?", answer, name, columns)
    assert [text for text in right if not score(FAMILIES[name], task, text)] == []
    assert [text for text in wrong if score(FAMILIES[name], task, text)] == []


@pytest.mark.parametrize("name", GYM)
def test_answers_of_reasoning_gym_are_verified(name):
    right, wrong = GYM[name]
    for task in islice(FAMILIES[name].tasks(), 5):
        assert score(FAMILIES[name], task, right.format(task.reference_answer))
        assert not score(FAMILIES[name], task, wrong)


@pytest.mark.parametrize("name", FAMILIES)
def test_tasks_are_always_the_same_and_their_prompts_distinct(name):
    skip_without_package(name)
    family = FAMILIES[name]
    tasks = list(TRAINING.surveyed(family).load())
    assert len(tasks) == TRAINING.SURVEYED
    assert [task.prompt for task in tasks] == [t.prompt for t in TRAINING.surveyed(family).load()]
    others = [*TRAINING.compared(family, 0).load(), *TRAINING.trained(family).load()]
    keys = [task.key for task in (*tasks, *others)]
    assert len(set(keys)) == len(keys)
    assert len(keys) >= TRAINING.SURVEYED + TRAINING.COMPARED + 20


@pytest.mark.parametrize("name", FAMILIES)
def test_the_reward_accepts_the_tasks_of_every_wording(name):
    skip_without_package(name)
    family = FAMILIES[name]
    for wording in range(len(family.wordings)):
        tasks = TRAINING.compared(family, wording).load()
        assert len(tasks) == TRAINING.COMPARED
        for task in tasks:
            (message,) = task.prompt
            assert message["role"] == "user"
            assert [x for x in task.columns if f"{{{x}}}" in message["content"]] == []
            score(family, task, "an answer")


@pytest.mark.parametrize("name", [n for n in BY_HAND if BY_HAND[n][0] and n != "sql"])
def test_the_reference_answer_of_each_task_is_right(name):
    skip_without_package(name)
    family = FAMILIES[name]
    tasks = islice(family.tasks(), 60)
    assert [t.prompt for t in tasks if not score(family, t, str(t.reference_answer))] == []


@pytest.mark.parametrize("name", FAMILIES)
def test_the_recipe_of_a_family_can_be_stored(name):
    recipe = TRAINING.family_recipe(name, "models/some")
    assert from_data(to_data(recipe)) == recipe
    assert recipe.policy.model == "models/some"


@pytest.mark.parametrize("name", ["lower_case", "sql", "two_digit_sums"])
def test_recipes_train_on_one_family_and_are_evaluated_on_the_tasks_of_the_survey(name):
    recipe = load_module_file(FOLDER / f"{name}.py").RECIPE
    assert isinstance(recipe, Recipe)
    family = recipe.tasks.family
    assert recipe.eval_tasks == TRAINING.surveyed(family)
    assert recipe.policy.max_new_tokens == family.max_new_tokens
    assert recipe.evaluation.success == family.success


def test_there_is_a_recipe_for_each_family_on_which_methods_can_be_compared():
    lines = (ROOT / "docs" / "real_survey.jsonl").read_text().splitlines()
    results = [row for row in map(json.loads, lines) if row["part"] == "survey"]
    shares = {row["family"]: row["pass_at_k"]["8"][0] for row in results}
    module: Any = load_module_file(FOLDER / "comparable.py")
    assert set(module.NAMES) == {name for name, share in shares.items() if 0.05 <= share <= 0.9}
    for name in module.NAMES:
        recipe = load_recipe(f"{FOLDER / 'comparable.py'}:{name}")
        assert recipe.tasks == TRAINING.trained(FAMILIES[name])
