"""The costs of the simulation, fitted to steps whose costs are known."""

import json
from dataclasses import replace

import numpy as np
import pytest

from grupo.evidence.simulate.costs import (
    Costs,
    costs_of_run,
    fit_costs,
    fit_stale_costs,
    measured_lengths,
)
from grupo.evidence.simulate.events import Machine, Simulation, Workload
from grupo.evidence.simulate.lengths import MeasuredLengths
from grupo.util.errors import ConfigError

COSTS = Costs(decode_step=1.0, decode_row=0.0, update_step=5.0, update_token=0.0)


def test_costs_are_found_again_from_steps_that_they_predict():
    rng = np.random.default_rng(0)
    lengths = {n: rng.integers(1, 40, size=12).tolist() for n in range(1, 10)}
    steps = [
        {
            "step": n,
            "time/generate": 0.01 * max(own) + 0.001 * sum(own),
            "time/update": 0.2 + 0.003 * sum(own),
            "time/logprobs": 0.002 * sum(own) * (n == 1),  # recomputed in the first step
            "time/other": 0.12,
            "time/score": 0.05,
        }
        for n, own in lengths.items()
    ]
    costs = fit_costs((steps, lengths))
    assert costs == Costs(
        decode_step=pytest.approx(0.01),
        decode_row=pytest.approx(0.001),
        update_step=pytest.approx(0.2),
        update_token=pytest.approx(0.003),
        stale_token=pytest.approx(0.002),
        forward_token=pytest.approx(0.002),
        batch_row=pytest.approx(0.01),
        score=pytest.approx(0.05),
    )


def test_a_run_with_fewer_prompts_tells_the_seconds_of_a_step_from_those_of_a_row():
    rng = np.random.default_rng(0)

    def measured_run(rows):
        lengths = {n: rng.integers(1, 40, size=rows).tolist() for n in range(1, 14)}
        steps = []
        for n, own in lengths.items():
            slowness = rng.uniform(0.8, 1.2)  # of the processor
            update = slowness * (0.1 + 0.001 * sum(own))
            generate = slowness * (0.005 * max(own) + 0.0005 * sum(own))
            step = {"step": n, "time/generate": generate, "time/update": update}
            steps.append(step | dict.fromkeys(("time/logprobs", "time/other", "time/score"), 0.0))
        return steps, lengths

    run, small_run = measured_run(64), measured_run(16)
    alone, both = fit_costs(run), fit_costs(run, small_run)
    for name, exact in (("decode_step", 0.005), ("update_step", 0.1)):
        assert abs(getattr(alone, name) / exact - 1) > 0.5
        assert getattr(both, name) == pytest.approx(exact, rel=0.3)


def test_stale_costs_are_what_a_token_takes_longer_in_a_stale_run():
    costs = replace(COSTS, update_step=0.2, update_token=0.003)
    lengths = {n: [10 * n, 5] for n in range(1, 7)}
    steps = [
        {"step": n, "time/update": 0.2 + 0.004 * sum(own), "time/logprobs": 0.002 * sum(own)}
        for n, own in lengths.items()
    ]
    assert fit_stale_costs(costs, (steps, lengths)) == replace(
        costs,
        stale_token=pytest.approx(0.003),
        forward_token=pytest.approx(0.002),
        uncached_token=pytest.approx(0.001),  # of the stale token's cost without the forward pass
    )


def test_two_stale_runs_tell_what_a_step_costs_more_from_what_a_token_does():
    costs = replace(COSTS, update_step=0.2, update_token=0.003)

    def stale_run(size):
        lengths = {n: [size * n, 5] for n in range(1, 7)}
        seconds = {n: 0.25 + 0.004 * sum(own) for n, own in lengths.items()}
        steps = [{"step": n, "time/update": s, "time/logprobs": 0.0} for n, s in seconds.items()]
        return steps, lengths

    fitted = fit_stale_costs(costs, stale_run(10), stale_run(2))
    assert fitted.stale_step == pytest.approx(0.05)
    assert fitted.stale_token == fitted.uncached_token == pytest.approx(0.001)
    # the step lasts as long as its update
    job = Workload(1, 1, MeasuredLengths((10,)), max_staleness=1)
    prediction = Simulation(replace(fitted, decode_step=0.01), Machine(1), job, 0).run(10)
    assert prediction.seconds == pytest.approx(0.25 + 10 * 0.004)


def test_stale_costs_do_not_contain_the_contention_that_they_were_measured_with():
    costs = replace(COSTS, decode_step=0.01, decode_row=0.001, update_step=0.2, update_token=0.003)
    lengths = {n: [10 * n, 5] for n in range(1, 7)}
    generation = {n: 0.01 * 10 * n + 0.001 * sum(own) for n, own in lengths.items()}
    steps = [
        {
            "step": n,
            "time/update": 0.2 + 0.005 * sum(own) + 0.1 * generation[n],
            "time/logprobs": 0.0,
        }
        for n, own in lengths.items()
    ]
    fitted = fit_stale_costs(costs, (steps, lengths), contention=0.1)
    assert fitted.stale_token == pytest.approx(0.002)


def write_run(folder, staleness, tokens=10):
    folder.mkdir()
    (folder / "recipe.json").write_text("{}")
    phases = {"generate": 2.0, "update": 4.0 + staleness, "logprobs": staleness, "other": 0.0}
    times = {f"time/{name}": seconds for name, seconds in phases.items()} | {"time/score": 0.0}
    fields = ("task", "prompt", "text", "reward", "reward_terms", "error", "advantage", "truncated")
    rollout = dict.fromkeys(fields, "") | {"reward_terms": {}}
    with (folder / "metrics.jsonl").open("w") as metrics:
        for n in range(1, 7):
            metrics.write(json.dumps({"step": n, "staleness": staleness, **times}) + "\n")
    with (folder / "rollouts.jsonl").open("w") as rollouts:
        for n in range(1, 7):
            rollouts.write(json.dumps({**rollout, "step": n, "length": tokens}) + "\n")
    return folder


def test_costs_of_two_runs(tmp_path):
    run, stale_run = write_run(tmp_path / "a", 0), write_run(tmp_path / "b", 1)
    lengths = measured_lengths(run)
    costs = costs_of_run(run, lengths, [stale_run])
    assert costs.update_token == pytest.approx(0.4)
    assert costs.stale_token == pytest.approx(0.2)  # one second more, and one of log-probabilities
    assert costs.forward_token == pytest.approx(0.1)
    assert costs_of_run(run, lengths).stale_token == 0  # no log-probability was recomputed


def test_costs_of_a_run_and_a_smaller_one(tmp_path):
    run, small_run = write_run(tmp_path / "a", 0), write_run(tmp_path / "b", 0, tokens=5)
    costs = costs_of_run(run, measured_lengths(run), small_run=small_run)
    assert costs.update_token == pytest.approx(0, abs=1e-9)
    assert costs.update_step == pytest.approx(4)  # both took 4 seconds


def test_runs_with_the_wrong_staleness_are_refused(tmp_path):
    run, stale_run = write_run(tmp_path / "a", 0), write_run(tmp_path / "b", 1)
    with pytest.raises(ConfigError, match=r"small-run: .*Allowed: a run with max_staleness=0"):
        costs_of_run(run, measured_lengths(run), small_run=stale_run)
    with pytest.raises(ConfigError, match=r"run: .*Allowed: a run with max_staleness=0"):
        costs_of_run(stale_run, measured_lengths(stale_run))
    with pytest.raises(ConfigError, match=r"stale-run: .*Allowed: a run with max_staleness above"):
        costs_of_run(run, measured_lengths(run), [run])


def test_steps_of_equal_sizes_do_not_distinguish_fixed_costs():
    step = {"time/generate": 0.6, "time/update": 1.2, "time/logprobs": 0.0, "time/other": 0.0}
    steps = [{**step, "time/score": 0.0, "step": n} for n in range(1, 7)]
    costs = fit_costs((steps, dict.fromkeys(range(1, 7), [10] * 12)))
    assert costs.decode_step == costs.update_step == 0
    assert costs.decode_row == pytest.approx(0.6 / 120)
    assert costs.update_token == pytest.approx(1.2 / 120)
