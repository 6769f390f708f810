"""The page of preference methods: its table is that of the runs, and its measures by hand."""

import json
from random import Random

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

PAGE = ROOT / "docs" / "comparisons" / "preferences.md"
TABLE = load_module_file(ROOT / "recipes" / "small_claims" / "preferences.py")
CLAIMS = load_module_file(ROOT / "recipes" / "small_claims" / "preference_claims.py")


def runs():
    records = map(json.loads, PAGE.with_suffix(".jsonl").read_text().splitlines())
    return {(r["arm"], r["judge"], r["seed"]): r["win_rate"] for r in records}


def test_the_table_and_the_rank_correlation_of_the_page_are_those_of_the_runs():
    written = TABLE.table(runs(), list(range(8))).splitlines()
    rows = {row.split(" | ")[0].strip("|` "): row for row in written if row.startswith("| `")}
    assert set(TABLE.TEN) < set(rows)
    page = PAGE.read_text().splitlines()
    assert [rows[call] for call in TABLE.TEN if rows[call] not in page] == []
    assert written[-1] == "rank correlation: 0.879 of ten methods, 0.868 of all"


def test_ranks_and_not_distances_count_in_the_correlation():
    pairs = [(1.0, 1.0), (2.0, 4.0), (3.0, 3.0), (40.0, 100.0)]
    assert TABLE.rank_correlation(pairs) == pytest.approx(0.8)


def test_dominated_points_add_nothing_to_the_hypervolume():
    # 1 x 0.2, then 0.5 x 0.3 above it
    assert CLAIMS.hypervolume([(1.0, 0.2), (0.5, 0.5), (0.4, 0.4)]) == pytest.approx(0.35)


def answer(key: int, preferred: float) -> Rollout:
    response = Response((key,), (-1.0,), rng_key=key)
    return Rollout((("", response),), step_values={"preferred": (preferred,)})


def test_the_bradley_terry_judge_has_its_probability_in_both_orders():
    judge, task, rng = CLAIMS.BradleyTerry(CLAIMS.right_items), Task("0", ""), Random(0)
    wins = []
    for _ in range(2_000):
        better, worse = answer(rng.randrange(10**9), 1.0), answer(rng.randrange(10**9), -1.0)
        wins.append(judge(task, better, worse))
        assert judge(task, worse, better) == 1 - wins[-1]
    assert sum(wins) / len(wins) == pytest.approx(0.731, abs=0.03)  # sigmoid(1)


def test_each_accepted_answer_is_a_mode_of_one_objective():
    (scored,) = CLAIMS.OneModePerObjective()([group({"correct": 1.0, "cluster": 5.0})])
    assert dict(scored.rollouts[0].reward_terms) == {
        "correct": 1.0,
        "cluster": 5.0,
        "even": 0.0,
        "odd": 1.0,
    }
    (wrong,) = CLAIMS.OneModePerObjective()([group({"correct": 0.0, "cluster": 5.0})])
    assert (wrong.rollouts[0].reward, wrong.rollouts[0].reward_terms["odd"]) == (0.0, 0.0)


def group(terms):
    return CLAIMS.Group(Task("0", ""), (Rollout(reward_terms=terms),))
