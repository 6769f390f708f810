"""The atlas: what is compared, which run is next, and what the page says of given runs."""

import math
from dataclasses import replace

import pytest

from grupo.evidence.atlas.comparison import AtlasComparison, whole_and_half
from grupo.evidence.atlas.page import agreement, atlas_page
from grupo.evidence.atlas.runs import AtlasRun, Point, append_run, read_runs
from grupo.evidence.atlas.schedule import next_run
from grupo.evidence.atlas.table import COMPARISONS
from grupo.evidence.claims.comparisons import Verdict
from grupo.evidence.claims.table import ALL_CLAIMS
from grupo.evidence.suggest.collect_evidence import collect_evidence
from grupo.evidence.suggest.evidence import evidence_from_data
from grupo.pipeline import Pipeline, Stage
from grupo.recipe import Evaluation
from grupo.util.errors import ConfigError
from grupo.util.importing import load_module_file
from grupo.util.shares import parse_share
from tests.helpers import training_components
from tests.helpers.paths import ROOT
from tests.helpers.training_recipes import base

ATLAS_RUN = load_module_file(ROOT / "recipes" / "real" / "atlas_run.py")
train_run, updates_of, with_seed = ATLAS_RUN.train_run, ATLAS_RUN.updates_of, ATLAS_RUN.with_seed
ONE = AtlasComparison("sums", "rloo", "grpo", "?", method="rloo")
OTHER = AtlasComparison("sums", "pods", "grpo", "?", unit="tokens")
LAST = AtlasComparison("words", "rloo", "grpo", "?")


def run(arm, seed, values=(0.1, 0.3, 0.5), tokens=1000.0, updates=8, answers=None):
    points = tuple(
        Point(updates * i / 2, tokens * i / 2, {"sampled": value, "answer_tokens": 9.0})
        for i, value in enumerate(values)
    )
    return AtlasRun(arm, seed, "d", points, (0.5,), answers or {})


def table_of(*runs):
    return {one.key: one for one in runs}


def pairs_of(gains, arm="sums/rloo", **options):
    runs = []
    for seed, gain in enumerate(gains):
        runs.append(run("sums/grpo", seed))
        runs.append(run(arm, seed, (0.1, 0.3, 0.5 + gain), **options))
    return table_of(*runs)


def test_both_arms_are_compared_where_the_smaller_one_ended():
    runs = pairs_of([0.1], tokens=2000.0)
    assert ONE.differences(runs, "updates") == [pytest.approx(0.1)]
    # at 1000 tokens the arm is in its middle, 0.3, and the baseline at its end, 0.5
    assert ONE.differences(runs, "tokens") == [pytest.approx(-0.2)]
    fewer_updates = pairs_of([0.1], updates=32)
    assert ONE.differences(fewer_updates, "updates") == [pytest.approx(0.2 - 0.5)]


def test_seeds_that_one_arm_lacks_are_no_pairs():
    runs = table_of(run("sums/grpo", 0), run("sums/grpo", 1), run("sums/rloo", 1))
    assert ONE.differences(runs, "updates") == [0.0]


def test_a_verdict_needs_eight_pairs_and_follows_the_predicted_direction():
    assert ONE.verdict(pairs_of([0.1] * 7)) is Verdict.PENDING
    assert ONE.verdict(pairs_of([0.1] * 8)) is Verdict.HOLDS
    assert ONE.verdict(pairs_of([-0.1] * 8)) is Verdict.DOES_NOT_HOLD
    less = replace(ONE, direction=-1)
    assert less.verdict(pairs_of([-0.1] * 8)) is Verdict.HOLDS
    assert ONE.verdict(pairs_of([0.1, -0.1] * 8)) is Verdict.UNDECIDED


def test_all_comparisons_of_a_family_reach_a_look_before_the_next_look():
    comparisons = (ONE, OTHER, LAST)
    runs, order = {}, []
    while key := next_run(comparisons, runs):
        order.append(key)
        noise = 0.01 * (-1) ** key[1]
        runs[key] = run(*key, values=(0.1, 0.2, 0.3 + noise * (not key[0].endswith("grpo"))))
    first = [key for key in order if key[1] < 8]
    assert order[: len(first)] == first
    assert [key[1] for key in first[:24]] == sorted([*range(8)] * 3)
    assert len(order) == len({*order})  # baselines are shared
    assert next_run(comparisons, runs) is None
    assert ONE.verdict(runs) is not Verdict.PENDING


def test_processes_with_shares_train_different_seeds():
    assert next_run((ONE,), {}, (1, 2))[1] == 0
    assert next_run((ONE,), {}, (2, 2))[1] == 1
    assert parse_share("2/3") == (2, 3)
    for text in ("0/2", "3/2", "half", "1/", "-1/2"):
        with pytest.raises(ConfigError, match="--share"):
            parse_share(text)


def test_runs_are_read_back_as_they_were_appended(tmp_path):
    file = tmp_path / "atlas.jsonl"
    assert read_runs(file) == {}
    first, later = run("sums/grpo", 0), run("sums/grpo", 0, (0.2, 0.3, 0.9))
    for one in (first, run("sums/rloo", 3), later):
        append_run(file, one)
    assert read_runs(file) == table_of(later, run("sums/rloo", 3))


def test_twice_the_training_is_compared_with_half_of_it():
    runs = table_of(*(run("sums/grpo", seed) for seed in range(3)))
    assert whole_and_half(runs, "sums/grpo", "sampled") == pytest.approx([0.2] * 3)


def test_the_page_shows_verdicts_checks_and_answers():
    shown = {"before": [["1 + 1?", "I | think", "0"]], "after": [["1 + 1?", "2", "1"]]}
    runs = pairs_of([0.1] * 8) | table_of(run("sums/rloo", 0, (0.1, 0.3, 0.6), answers=shown))
    page = atlas_page((ONE, OTHER), runs, {"rloo": "holds"})
    assert "**holds** (1): rloo (sums)" in page
    assert "**needs more runs** (1): pods (sums)" in page
    assert "| sums | 8 | 10.0% | 30.0% | 50.0% | +20.0 [" in page
    (row,) = (line for line in page.splitlines() if "(methods/rloo.md)" in line)
    assert row.endswith("| 8 | holds | holds | yes |")
    assert r"| before | 1 + 1? | I \| think | 0 |" in page
    assert "| rloo | 1 + 1? | 2 | 1 |" in page


def test_agreement_is_said_of_decided_verdicts_alone():
    assert agreement(Verdict.DOES_NOT_HOLD, "holds") == "no"
    assert agreement(Verdict.DOES_NOT_HOLD, "does not hold, decided once") == "yes"
    assert agreement(Verdict.PENDING, "holds") == agreement(Verdict.HOLDS, "not told apart") == ""


def test_the_verdict_on_the_model_goes_before_that_on_the_claim():
    values = {"family": "f", "baseline": "grpo", "metric": "sampled", "unit": "updates"}
    values |= {"difference": -0.1, "low": -0.2, "high": -0.05, "pairs": 8}
    part = {**values, "arm": "a part", "is_whole": False, "verdict": "holds"}
    whole = {**values, "arm": "rloo", "is_whole": True, "verdict": "does not hold"}
    assert evidence_from_data({"atlas": [part]}).verdict == "not tested"
    assert evidence_from_data({"atlas": [part, whole]}).verdict == "does not hold"


def test_comparisons_that_ended_are_evidence(tmp_path):
    for name in ("smoke_training.md", "bias.md"):
        (tmp_path / name).write_text((ROOT / "docs" / name).read_text())
    for seed in range(8):
        append_run(tmp_path / "atlas.jsonl", run("sums_1_digit/grpo", seed))
        append_run(tmp_path / "atlas.jsonl", run("sums_1_digit/rloo", seed, (0.1, 0.3, 0.9)))
    (row,) = collect_evidence(tmp_path, ())["rloo"]["atlas"]
    assert (row["is_whole"], row["verdict"]) == (True, "holds")
    assert math.isclose(row["difference"], 0.4)


def test_every_comparison_has_recipes_and_names_a_method():
    atlas = load_module_file(ROOT / "recipes" / "real" / "atlas.py")
    recipes = atlas.arms()
    assert {arm for one in COMPARISONS for arm in one.arms} == {*recipes}
    assert len(COMPARISONS) >= 16
    claims = {claim.key for claim in ALL_CLAIMS}
    assert sum(one.method in claims for one in COMPARISONS) >= 10
    for one in COMPARISONS:
        arm, baseline = (recipes[name] for name in one.arms)
        if isinstance(arm, Pipeline):
            assert arm.stages[-1].recipe.method == baseline.method
            sft = arm.stages[0].recipe
            for source in (sft.tasks, sft.eval_tasks):  # SFT refuses a task without one
                assert all("completion" in task.columns for task in source.load())
            assert sum(updates_of(stage.recipe) for stage in arm.stages) == updates_of(baseline)
            continue
        assert arm.method != baseline.method
        assert arm.replace(method=baseline.method) == baseline, "arms differ in the method alone"


@pytest.fixture(scope="module")
def tiny_lm_recipe(tmp_path_factory):
    """Two steps of a tiny language model, with evaluations before, between and after them."""
    model = tmp_path_factory.mktemp("atlas") / "model"
    training_components.save_models(model)
    return base(str(model)).replace(
        max_steps=2, save_every=2, evaluation=Evaluation(attempts=2, every=1)
    )


def test_a_run_keeps_evaluations_tokens_and_answers_of_seed_0(tiny_lm_recipe):
    recipe = tiny_lm_recipe
    first = train_run("sums/grpo", recipe, 0, "d")
    second = train_run("sums/grpo", with_seed(recipe, 0), 1, "d")
    assert (first.seed, second.seed, first.digest) == (0, 1, "d")
    assert [point.updates for point in first.points] == [0, 1, 2]
    assert first.points[0].tokens == 0 < first.points[1].tokens < first.points[2].tokens
    assert {"sampled", "greedy", "answer_tokens"} <= {*first.points[-1].metrics}
    assert len(first.reward) == 2
    assert [len(first.answers[name]) for name in ("before", "after")] == [2, 2]
    assert second.answers == {}


def test_the_updates_of_earlier_stages_count(tiny_lm_recipe):
    recipe = tiny_lm_recipe
    pipeline = Pipeline((Stage("first", recipe), Stage("second", recipe)))
    run_of_pipeline = train_run("sums/twice", pipeline, 3, "d")
    assert [point.updates for point in run_of_pipeline.points] == [2, 3, 4]
    assert run_of_pipeline.points[0].tokens == 0
