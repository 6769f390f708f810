"""The simulation against steps that are worked out by hand."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from grupo.distributed import assignment
from grupo.distributed.exchange_seconds import exchange_seconds
from grupo.evidence.simulate.costs import Costs
from grupo.evidence.simulate.events import Machine, Simulation, Workload
from grupo.evidence.simulate.lengths import LogNormal, MeasuredLengths, parse_lengths
from grupo.evidence.simulate.updates import BARRIERS, MAX_IMBALANCE
from grupo.util.errors import ConfigError
from tests.helpers.fast_cases import fast_cases

COSTS = Costs(decode_step=1.0, decode_row=0.0, update_step=5.0, update_token=0.0)
JOB = Workload(prompts=2, group_size=3, lengths=MeasuredLengths((10,)))


def predict(costs=COSTS, machine=Machine(1), job=JOB, steps=10, seed=0):
    return Simulation(costs, machine, job, seed).run(steps)


@dataclass
class LengthsInTurn:
    """Lengths that are repeated in the same order."""

    lengths: Sequence[int]
    limit: int

    def draw(self, rng, count):
        return np.resize(np.asarray(self.lengths), count)


def test_phases_follow_one_another_on_policy():
    prediction = predict()
    assert prediction.seconds == pytest.approx(10 + 5)
    assert prediction.trainer_idle == pytest.approx(10 / 15)
    assert prediction.generators_busy == pytest.approx(10 / 15)
    assert prediction.staleness == prediction.oldest == 0


def test_two_rollouts_on_one_generator():
    costs = Costs(decode_step=1.0, decode_row=0.25, update_step=2.0, update_token=0.5)
    prediction = predict(costs, job=Workload(1, 2, LengthsInTurn((2, 6), 6)))
    # two steps with two rows, then four with one; 8 tokens are trained on
    assert prediction.seconds == pytest.approx(2 * 1.5 + 4 * 1.25 + 2 + 8 * 0.5)
    assert prediction.processor_seconds == pytest.approx(14)


def test_asynchronous_generation_hides_the_update():
    for max_staleness in (1, 3):
        prediction = predict(job=replace(JOB, max_staleness=max_staleness))
        assert prediction.seconds == pytest.approx(10)
        assert prediction.trainer_idle == pytest.approx(0.5)
        # the weights of a step are those of the update that ended when it was queued
        assert prediction.staleness == prediction.oldest == max_staleness


def test_stale_tokens_cost_more():
    costs = replace(COSTS, stale_token=0.25)
    assert predict(costs).seconds == pytest.approx(15)
    # 60 tokens: the update takes longer than generation
    assert predict(costs, job=replace(JOB, max_staleness=1)).seconds == pytest.approx(5 + 15)


def test_one_processor_does_the_work_of_both():
    job = replace(JOB, max_staleness=1)
    assert predict(machine=Machine(1, cores=1), job=job).seconds == pytest.approx(15)
    assert predict(machine=Machine(1, cores=2), job=job).seconds == pytest.approx(10)


def test_busy_processes_on_the_same_processors_slow_each_other_down():
    costs = Costs(decode_step=0.0, decode_row=1.0, update_step=1.0, update_token=0.1)
    alone = predict(costs, Machine(2)).seconds
    for machine in (Machine(2, contention=0.1), Machine(2, cores=2), Machine(1, 1, 2, 0.1)):
        assert (
            predict(costs, machine).seconds
            == predict(costs, replace(machine, contention=0)).seconds
        )
    contended = predict(costs, Machine(2, cores=2, contention=0.1))
    assert contended.seconds == pytest.approx(1.1 * alone)
    assert contended.processor_seconds == pytest.approx(2 * 1.1 * alone)
    # four on two processors: each has half of one, and three others beside it
    four = replace(JOB, prompts=4)
    seconds = predict(costs, Machine(4, cores=2, contention=0.1), four).seconds
    assert seconds == pytest.approx(predict(costs, Machine(4), four).seconds * 2 * 1.3)


def test_generation_is_slower_in_a_process_that_updates():
    costs = replace(COSTS, update_step=6.0, generation_slowdown=0.5)
    assert predict(costs).seconds == pytest.approx(10 + 6)
    # 6 s of the update, in which generation does the work of 4, then the other 6 of 10
    job = replace(JOB, max_staleness=1)
    prediction = predict(costs, job=job)
    assert prediction.seconds == pytest.approx(12)
    assert prediction.processor_seconds == pytest.approx(12 + 6)
    assert predict(costs, Machine(1, servers=1), job).seconds == pytest.approx(10)


def test_rows_are_shared_by_the_ranks():
    costs = Costs(decode_step=0.0, decode_row=1.0, update_step=1.0, update_token=0.1)
    # 6 rollouts of 10 tokens; a rank has 3 of them
    assert predict(costs).seconds == pytest.approx(6 * 10 + 1 + 6.0)
    assert predict(costs, Machine(2)).seconds == pytest.approx(3 * 10 + 1 + 3.0)
    # on one processor each of two ranks is half as fast
    assert predict(costs, Machine(2, cores=1)).seconds == pytest.approx(60 + (1 + 3.0) * 2)


def test_ranks_wait_for_the_one_with_the_longest_answers():
    costs = Costs(decode_step=1.0, decode_row=0.0, update_step=0.0, update_token=1.0)
    job = Workload(2, 1, LengthsInTurn((21, 19), 21))
    assert predict(costs, Machine(2), job).seconds == pytest.approx(21 + 21)
    # more than a tenth above the mean: rows are moved
    job = Workload(2, 1, LengthsInTurn((30, 10), 30))
    assert predict(costs, Machine(2), job).seconds == pytest.approx(30 + 20)


def test_rows_that_are_moved_have_lost_their_activations():
    costs = Costs(0.0, 1.0, update_step=0.0, update_token=1.0, uncached_token=0.5, stale_token=0.25)
    job = Workload(2, 1, LengthsInTurn((30, 10), 30))
    # each rank updates 20 tokens, of which one generated 10 elsewhere
    assert predict(costs, Machine(2), job).seconds == pytest.approx(30 + 20 + 10 * 0.5)
    job = Workload(2, 1, LengthsInTurn((21, 19), 21))  # similar loads: no row is moved
    assert predict(costs, Machine(2), job).seconds == pytest.approx(21 + 21)
    # no rank has activations of older weights
    job = Workload(2, 1, LengthsInTurn((30, 10), 30), max_staleness=1)
    assert predict(costs, Machine(2), job).seconds == pytest.approx(max(30, 20 * 1.25))


def test_one_rank_writes_the_journals():
    costs = replace(COSTS, log_token=0.5)  # of 60 tokens
    for ranks in (1, 2):
        prediction = predict(costs, Machine(ranks))
        assert prediction.seconds == pytest.approx(10 + 5 + 30)
        assert prediction.processor_seconds == pytest.approx(ranks * (10 + 5) + 30)


def test_what_ranks_exchange():
    costs = replace(COSTS, gradient_sum=2.0, batch_row=0.5, score=0.25, weight_transfer=0.125)
    assert predict(costs).seconds == pytest.approx(15 + 6 * 0.5 + 0.375)
    assert predict(costs, Machine(4)).seconds == pytest.approx(15 + 3 + 0.375 + 2.0 * 2 * 3 / 4)
    costs = replace(COSTS, barrier=0.125, serialize_token=0.25, deserialize_token=0.5)
    assert predict(costs).seconds == pytest.approx(15)
    exchanged = BARRIERS * 0.125 + 60 / 2 * 0.25 + 60 * 0.5  # of 60 tokens
    assert predict(costs, Machine(2)).seconds == pytest.approx(15 + exchanged)


def test_a_long_answer_does_not_hold_a_step_with_tokens_per_step():
    # each step begins an answer of 2 tokens and one of 10: the latter needs 4 + 4 + 2
    job = Workload(2, 1, LengthsInTurn((2, 10), 10), max_staleness=2, tokens_per_step=4)
    assert job.later_steps == 2
    assert job.steps_ahead == 0
    prediction = predict(job=job)
    assert prediction.seconds == pytest.approx(4 + 5)
    assert prediction.oldest == 2
    # of 12 tokens, 4 are two updates old and 4 are one update old
    assert prediction.staleness == pytest.approx((4 * 2 + 4) / 12)


def test_generation_runs_a_step_ahead_if_max_staleness_is_above_that_of_the_portions():
    job = Workload(2, 1, LengthsInTurn((2, 10), 10), max_staleness=3, tokens_per_step=4)
    assert job.steps_ahead == replace(job, max_staleness=8).steps_ahead == 1
    prediction = predict(job=job)
    assert prediction.seconds == pytest.approx(5)  # of the update, which is longer
    assert prediction.oldest == 3
    assert prediction.staleness == pytest.approx(1 + (4 * 2 + 4) / 12)


def test_a_group_is_trained_on_when_its_longest_rollout_has_ended():
    job = Workload(1, 2, LengthsInTurn((2, 10), 10), max_staleness=2, tokens_per_step=4)
    prediction = predict(job=job)
    # the 2 tokens wait for the others
    assert prediction.staleness == pytest.approx((2 * 2 + 4 * 2 + 4) / 12)
    assert prediction.seconds == pytest.approx(4 + 5)


def test_continued_rollouts_are_evaluated_once_more():
    job = Workload(1, 1, LengthsInTurn((10,), 10), max_staleness=2, tokens_per_step=4)
    prediction = predict(replace(COSTS, forward_token=0.25), job=job)
    # in each step one rollout is continued after 4 tokens and one after 8
    assert prediction.seconds == pytest.approx(12 * 0.25 + 4 + 5)


def test_servers_get_the_rollouts_that_ranks_would_generate():
    costs = Costs(decode_step=0.0, decode_row=1.0, update_step=1.0, update_token=0.0)
    job = Workload(4, 1, LengthsInTurn((10,), 10))
    assert predict(costs, Machine(1, servers=4), job).seconds == pytest.approx(10 + 1)
    assert predict(costs, Machine(1, servers=2), job).seconds == pytest.approx(2 * 10 + 1)


@pytest.mark.parametrize(
    "options",
    [{"tokens_per_step": 10}, {"tokens_per_step": 3, "max_staleness": 2}, {"tokens_per_step": 9}],
)
def test_what_a_recipe_refuses_is_refused(options):
    with pytest.raises(ConfigError, match=r"(tokens_per_step|max_staleness): .* Allowed"):
        replace(JOB, **options)


@pytest.mark.parametrize(
    "options", fast_cases(1, [{}, {"max_staleness": 2}, {"tokens_per_step": 30}])
)
def test_more_processes_are_not_slower(options):
    costs = Costs(0.01, 0.002, 0.1, 0.001, stale_token=0.001, forward_token=0.0005)
    job = Workload(8, 4, LogNormal(20, 0.8, 90), **{"max_staleness": 2, **options})
    seconds = [predict(costs, Machine(n), job, steps=50).seconds for n in (1, 2, 4, 8)]
    assert seconds == sorted(seconds, reverse=True)
    assert seconds[-1] < seconds[0] / 2
    shared = [predict(costs, Machine(n, cores=2), job, steps=50).seconds for n in (2, 4)]
    assert min(shared) > 0.95 * seconds[1]


def test_equal_seeds_give_equal_predictions():
    job = Workload(8, 4, LogNormal(20, 0.8, 90), max_staleness=2, tokens_per_step=30)
    first, again, other = (predict(job=job, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


def test_rows_are_moved_as_in_training():
    assert MAX_IMBALANCE == assignment.MAX_IMBALANCE


def test_seconds_of_an_exchange_are_those_of_a_token():
    for seconds in exchange_seconds(tokens=50, rollouts=4):
        assert 1e-8 < seconds < 1e-3


def test_lognormal_lengths_have_the_mean_and_the_limit():
    drawn = LogNormal(3000, 0.8, 1 << 40).draw(np.random.default_rng(0), 100_000)
    assert drawn.mean() == pytest.approx(3000, rel=0.02)
    assert np.log(drawn).std() == pytest.approx(0.8, rel=0.02)
    assert LogNormal(3000, 0.8, 4000).draw(np.random.default_rng(0), 1000).max() == 4000


@pytest.mark.parametrize("text", ["3000", "LogNormal(3000)", "Normal(3000, 1)", "LogNormal(0, 1)"])
def test_other_lengths_are_refused(text):
    with pytest.raises(ConfigError, match=r"length: .* Allowed: 'LogNormal"):
        parse_lengths(text, 100)
