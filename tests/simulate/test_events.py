"""The simulation against steps that are worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from grupo.core.errors import ConfigError
from grupo.simulate.costs import Costs, fit_costs
from grupo.simulate.events import Machine, Simulation, Workload
from grupo.simulate.lengths import LogNormal, MeasuredLengths, parse_lengths

COSTS = Costs(decode_step=1.0, decode_row=0.0, update_step=5.0, update_token=0.0)
JOB = Workload(prompts=2, group_size=3, lengths=MeasuredLengths((10,)))


def predict(costs=COSTS, machine=Machine(1), job=JOB, steps=10):
    return Simulation(costs, machine, job).run(steps)


def test_phases_follow_one_another_on_policy():
    prediction = predict()
    assert prediction.seconds == pytest.approx(10 + 5)
    assert prediction.trainer_idle == pytest.approx(10 / 15)
    assert prediction.generators_busy == pytest.approx(10 / 15)
    assert prediction.staleness == prediction.oldest == 0


def test_asynchronous_generation_hides_the_update():
    prediction = predict(job=replace(JOB, max_staleness=1))
    assert prediction.seconds == pytest.approx(10)
    assert prediction.trainer_idle == pytest.approx(0.5)
    assert prediction.staleness == prediction.oldest == 1


def test_one_processor_does_the_work_of_both():
    job = replace(JOB, max_staleness=1)
    assert predict(machine=Machine(1, cores=1), job=job).seconds == pytest.approx(15)
    assert predict(machine=Machine(1, cores=2), job=job).seconds == pytest.approx(10)


def test_rows_are_shared_by_the_ranks():
    costs = Costs(decode_step=0.0, decode_row=1.0, update_step=1.0, update_token=0.1)
    # 6 rollouts of 10 tokens; a rank has 3 of them
    assert predict(costs).seconds == pytest.approx(6 * 10 + 1 + 6.0)
    assert predict(costs, Machine(2)).seconds == pytest.approx(3 * 10 + 1 + 3.0)
    # on one processor each of two ranks is half as fast
    assert predict(costs, Machine(2, cores=1)).seconds == pytest.approx(60 + (1 + 3.0) * 2)


def test_sums_of_gradients_and_what_every_rank_does_for_the_batch():
    costs = replace(COSTS, gradient_sum=2.0, batch_row=0.5, score=0.25, weight_transfer=0.125)
    assert predict(costs).seconds == pytest.approx(15 + 6 * 0.5 + 0.375)
    assert predict(costs, Machine(4)).seconds == pytest.approx(15 + 3 + 0.375 + 2.0 * 2 * 3 / 4)


def test_a_long_answer_holds_a_step_unless_tokens_per_step_are_limited():
    job = Workload(4, 1, MeasuredLengths((2, 2, 2, 40)), max_staleness=4)
    free, limited = (predict(job=replace(job, tokens_per_step=n), steps=400) for n in (0, 10))
    # a step has the answer of 40 tokens with probability 1 - (3/4)^4
    assert free.seconds == pytest.approx(40 * (1 - 0.75**4) + 5 * 0.75**4, rel=0.1)
    assert limited.seconds < 12
    assert limited.oldest <= 4 + 4  # max_staleness, and 40 / 10 steps


def test_costs_are_found_again_from_steps_that_they_predict():
    rng = np.random.default_rng(0)
    lengths = {n: rng.integers(1, 40, size=12).tolist() for n in range(1, 10)}
    steps = [
        {
            "step": n,
            "time/generate": 0.01 * max(own) + 0.001 * sum(own),
            "time/update": 0.2 + 0.003 * sum(own),
            "time/logprobs": 0.0,
            "time/other": 0.12,
            "time/score": 0.05,
        }
        for n, own in lengths.items()
    ]
    costs = fit_costs(steps, lengths)
    assert costs == Costs(
        decode_step=pytest.approx(0.01),
        decode_row=pytest.approx(0.001),
        update_step=pytest.approx(0.2),
        update_token=pytest.approx(0.003),
        batch_row=pytest.approx(0.01),
        score=pytest.approx(0.05),
    )


def test_steps_of_equal_sizes_do_not_distinguish_fixed_costs():
    step = {"time/generate": 0.6, "time/update": 1.2, "time/logprobs": 0.0, "time/other": 0.0}
    steps = [{**step, "time/score": 0.0, "step": n} for n in range(1, 7)]
    costs = fit_costs(steps, dict.fromkeys(range(1, 7), [10] * 12))
    assert costs.decode_step == costs.update_step == 0
    assert costs.decode_row == pytest.approx(0.6 / 120)
    assert costs.update_token == pytest.approx(1.2 / 120)


def test_lognormal_lengths_have_the_mean_and_the_limit():
    drawn = LogNormal(3000, 0.8, 1 << 40).draw(np.random.default_rng(0), 100_000)
    assert drawn.mean() == pytest.approx(3000, rel=0.02)
    assert np.log(drawn).std() == pytest.approx(0.8, rel=0.02)
    assert LogNormal(3000, 0.8, 4000).draw(np.random.default_rng(0), 1000).max() == 4000


@pytest.mark.parametrize("text", ["3000", "LogNormal(3000)", "Normal(3000, 1)", "LogNormal(0, 1)"])
def test_other_lengths_are_refused(text):
    with pytest.raises(ConfigError, match=r"length: .* Allowed: 'LogNormal"):
        parse_lengths(text, 100)
