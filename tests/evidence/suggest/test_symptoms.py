"""Runs with one problem each: the problem is found; a healthy run has none."""

import json

import pytest

from grupo.evidence.suggest.symptoms import read_answers
from grupo.util.errors import ConfigError
from tests.helpers.written_runs import write_run

STEPS = 12
HEALTHY = {
    "completions/truncated_frac": 0.05,
    "completions/length_mean": 20.0,
    "sampler_mismatch/logp_diff_mean": 1e-6,
    "clip_frac/low": 0.01,
    "clip_frac/high": 0.02,
    "policy/kl_ref": 0.01,
    "time_frac/generate": 0.5,
    "tokens/unused": 3.0,
}
PROBLEMS = {
    "too-hard": {"groups/nonzero_std_frac": 0.05, "reward/mean": 0.02},
    "too-easy": {"groups/nonzero_std_frac": 0.05, "reward/mean": 0.97},
    "truncated": {"completions/truncated_frac": 0.6},
    "mismatch": {"sampler_mismatch/logp_diff_mean": 0.03},
    "unstable": {"clip_frac/high": 0.3},
    "cost": {"tokens/unused": 25.0},
}
TRENDS = {
    "entropy": ("policy/entropy", 1.0, 0.01),
    "drift": ("policy/kl_ref", 0.01, 3.0),
    "too-long": ("completions/length_mean", 20.0, 80.0),
}


def written(folder, trend=None, **changes):
    """A run whose answers differ and whose rewards stay, but for the given changes."""
    values = {**HEALTHY, "reward/mean": 0.4, **changes}
    write_run(folder, STEPS, group=2, **values)
    path = folder / "metrics.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    if trend:
        name, first, last = trend
        for i, line in enumerate(lines):
            line[name] = first * (last / first) ** (i / (STEPS - 1))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    rollouts = folder / "rollouts.jsonl"
    texts = [json.loads(line) for line in rollouts.read_text().splitlines()]
    for i, line in enumerate(texts):
        line["text"] = f"answer {i}"
    rollouts.write_text("".join(json.dumps(line) + "\n" for line in texts))
    return folder


def problems(folder):
    return [symptom.problem for symptom in read_answers(folder).symptoms]


def test_a_healthy_run_of_a_language_model_has_no_symptom(tmp_path):
    answers = read_answers(written(tmp_path / "run"))
    assert answers.symptoms == ()
    assert answers.answers == {
        "policy": "language",
        "reward": "verifier",
        "extra": "nothing",
        "problem": "unknown",
        "sampler": "local",
    }


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_metric_out_of_its_healthy_range_is_found(problem, tmp_path):
    assert problems(written(tmp_path / "run", **PROBLEMS[problem])) == [problem]


@pytest.mark.parametrize("problem", TRENDS)
def test_a_trend_is_found(problem, tmp_path):
    assert problem in problems(written(tmp_path / "run", TRENDS[problem]))


def test_groups_of_equal_texts_are_found(tmp_path):
    write_run(tmp_path / "run", STEPS, **{**HEALTHY, "reward/mean": 0.4})
    assert problems(tmp_path / "run") == ["diversity"]


def test_rollouts_of_older_weights_are_stale(tmp_path):
    assert read_answers(written(tmp_path / "run", staleness=1.0)).sampler == "stale"


def test_a_run_of_two_steps_shows_no_trend(tmp_path):
    write_run(tmp_path / "run", 2)
    with pytest.raises(ConfigError, match=r"has 2 steps. Allowed: 3 or more"):
        read_answers(tmp_path / "run")
