"""Recipes of `docs/small_claims.md`: what they ask and measure; the page has the runs' tables."""

import pytest

from grupo.core.types import Task
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.sequential_table import sequential_table
from grupo.evidence.claims.stored_runs import stored_runs
from grupo.rollouts.curricula import ShuffledTasks
from grupo.tasks.length_budget import with_budget
from grupo.toy.tokenizers import word_tokenizer
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

RECIPES = ROOT / "recipes" / "small_claims"
BUDGET = load_module_file(RECIPES / "read_budget.py")
RARE = load_module_file(RECIPES / "rare_regions.py")
LIKELY = load_module_file(RECIPES / "over_optimised.py")
PAGE = (ROOT / "docs" / "small_claims.md").read_text().splitlines()


@pytest.mark.parametrize(
    ("recipe", "arms", "metric", "tested"),
    [
        (RARE, list(RARE.ARMS), "tail", RARE.DROPPED),
        (
            BUDGET,
            ["start", BUDGET.BASELINE, BUDGET.DECAY, BUDGET.BOUND],
            "correct",
            BUDGET.DECAY,
        ),
        (
            LIKELY,
            [LIKELY.BASELINE, LIKELY.BEST, LIKELY.ALARM, LIKELY.GIVEN],
            "correct",
            LIKELY.ALARM,
        ),
    ],
)
def test_the_tables_of_the_page_are_those_of_the_runs(recipe, arms, metric, tested):
    file = ROOT / "docs" / "small_claims_runs" / f"{recipe.__name__.split('.')[-1]}.jsonl"
    runs = stored_runs(file, dict.fromkeys(arms), range(8))
    baseline = recipe.BASELINE
    pair = {name: runs[name] for name in (baseline, tested)}
    lines = paired_table(runs, recipe.METRICS, baseline).splitlines()
    lines += sequential_table(pair, metric, baseline, recipe.DESIGN).splitlines()
    assert set(lines) <= set(PAGE)


@pytest.mark.parametrize("length", BUDGET.WORKINGS)
def test_a_working_has_the_tokens_of_its_length(length):
    text = BUDGET.working([3, 4, 1], length)
    tokenizer = word_tokenizer([text])
    assert len(tokenizer.tokenize(text)) + 1 == length  # with the end token
    assert BUDGET.last_number(text) == "3"  # 3 + 4 + 1 = 8, modulo 5


def test_budgets_of_both_arms_end_alike_and_are_in_the_prompt(tmp_path):
    arms = BUDGET.Arms(tmp_path)
    arms.__dict__["model"] = "model"  # nothing is trained here
    decay = arms.recipe(BUDGET.grpo(), BUDGET.GeometricSteps(BUDGET.FIRST, BUDGET.FINAL), 0)
    assert decay.method.curriculum.inner == ShuffledTasks()
    assert decay.method.curriculum.budget.value(0.0) == BUDGET.FIRST
    assert decay.method.curriculum.budget.value(1.0) == BUDGET.FINAL
    task = with_budget(BUDGET.sums(0, 1)[0], 3, BUDGET.SENTENCE)
    assert str(task.prompt).endswith("use 3 : ")


def test_demonstrations_fit_the_budget_in_two_of_three_cases():
    tasks = [with_budget(x, 7, BUDGET.SENTENCE) for x in BUDGET.sums(0, 125)]
    texts = [text for task in tasks for text in BUDGET.demonstrate(task)]
    assert sum(len(text.split()) == 2 for text in texts) / len(texts) == pytest.approx(
        2 / 3, abs=0.05
    )


def test_sums_of_the_three_parts_of_a_run_differ():
    keys = [{x.key for x in part} for part in (LIKELY.PAIRED, LIKELY.READ, LIKELY.TESTED)]
    assert sum(map(len, keys)) == len(set.union(*keys)) == 15 * 15


def test_an_alarm_stops_where_both_numbers_have_fallen_twice():
    lines = [
        {"entropy_top10": e, "mass_top10": m}
        for e, m in ((1.0, 0.9), (1.1, 0.95), (1.0, 0.94), (0.9, 0.93), (0.8, 0.92))
    ]
    assert LIKELY.first_alarm(lines) == 3
    assert LIKELY.first_alarm(lines[:3]) == 2  # none: the last evaluation


def test_a_region_of_the_tail_has_at_most_ten_countries():
    pytest.importorskip("countryinfo")
    regions = [region for region, _ in RARE.countries().values()]
    assert {regions.count(region) <= RARE.TAIL for region in RARE.tail()} == {True}
    assert 0.2 < sum(region in RARE.tail() for region in regions) / len(regions) < 0.35
    assert RARE.prompt("Melanesia", "none") == "<region=Melanesia><neighbours=none>country ? "


def test_only_the_upper_bound_shows_the_tag_that_is_asked_for():
    shown = {
        name: sampler.split_tags(Task("k", "?", columns=dict.fromkeys(RARE.TAGS, "v")), Never())[0]
        for name, sampler in RARE.ARMS.items()
    }
    assert list(shown[RARE.BASELINE]) == list(RARE.TAGS)
    assert list(shown["the region's tag alone"]) == ["region"]


class Never:
    """Draws numbers above all probabilities of an arm that drops nothing."""

    def random(self) -> float:
        return 0.999
