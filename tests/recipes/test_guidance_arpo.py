"""The frozen lakes of ARPO's table: Gymnasium's transitions, the survey, and a short run."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from grupo.algo.filters import keep_all
from grupo.evidence.claims.environments import sample
from grupo.evidence.claims.stored_runs import stored_runs
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

ARPO = load_module_file(ROOT / "recipes" / "guidance" / "arpo.py")
SMALL = ARPO.SurveyedLakes(num_tasks=2, candidates=40)


def test_moves_lead_where_gymnasium_leads_them():
    # S F    tiles 0 1
    # H G          2 3
    env = ARPO.lakes_env([("SF", "HG")], max_length=3)
    down, right = 1, 2
    assert env.next_cell[0].tolist() == [0, -1, 1, 0]  # down is a hole
    assert env.next_cell[1].tolist() == [0, -1, 1, 1]  # down is the goal
    always = np.full((4, 4), -50.0)
    always[0, right] = always[1, down] = 0.0
    attempts = sample(env, always, np.zeros(5, int), np.zeros(5, int), np.random.default_rng(0))
    scores = env.score(attempts, np.random.default_rng(0))
    assert scores.correct.tolist() == scores.terms["env_reward"].tolist() == [1.0] * 5
    always[0, down] = 50.0
    always -= np.log(np.exp(always).sum(1, keepdims=True))
    attempts = sample(env, always, np.zeros(5, int), np.zeros(5, int), np.random.default_rng(0))
    assert attempts.length.tolist() == [1] * 5
    assert not env.score(attempts, np.random.default_rng(0)).correct.any()


@pytest.mark.slow
def test_the_chosen_lakes_are_crossed_rarely():
    env = SMALL(seed=1)
    assert env.num_tasks == 2
    task = np.repeat(np.arange(2), 2000)
    attempts = sample(env, ARPO.log_prior(env), task, task, np.random.default_rng(0))
    success = env.score(attempts, np.random.default_rng(0)).correct.reshape(2, 2000).mean(1)
    assert 0 < success.min() <= success.max() < 0.1


def test_arms_differ_in_the_filter_and_the_buffer_only():
    assert ARPO.ARPO.replace(filter=keep_all) == ARPO.GRPO
    assert ARPO.METHODS["known success"] == ARPO.METHODS["ARPO"] == ARPO.ARPO


@pytest.mark.slow
def test_a_known_success_is_replayed_from_the_first_step():
    setting = replace(ARPO.SETTING, env=SMALL, rollouts_per_step=16)
    plain, known = (ARPO.LakeRun(ARPO.ARPO, 0, setting) for _ in range(2))
    known.know_successes()
    assert {key: len(x) for key, x in known.history.replay_rollouts.items()} == {"0": 1, "1": 1}
    for run in (plain, known):
        run.step()
    assert known.is_replayed == [True, True]
    assert known.num_moves == plain.num_moves > 0  # both generate the same first groups
    assert known.is_flat == [False, False]


def test_the_tables_of_stored_runs_end_with_the_named_comparison(tmp_path, capsys):
    metrics = dict.fromkeys(("area", "after", "half", "flat", "replayed", "steps"), 0.5)

    def area(name, seed):
        return {**metrics, "area": 0.5 + 0.1 * (name == "ARPO") + 0.001 * seed}

    arms = {name: partial(area, name) for name in ARPO.METHODS}
    stored_runs(tmp_path / "runs.jsonl", arms, range(8))
    ARPO.main(str(tmp_path), "0", "8")
    assert "| ARPO | +0.1 [" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.slow
def test_a_run_generates_the_moves_that_it_is_given():
    metrics = ARPO.run(ARPO.ARPO, seed=100, max_moves=3000)
    assert metrics["steps"] > 1
    assert 0 <= metrics["before"] < 0.1
