"""The time of a run, computed step by step for a small model."""

from dataclasses import replace

import pytest

from grupo.algo.minibatches import Updates
from grupo.config import run_work
from grupo.config.defaults import TaskLengths
from grupo.config.run_work import DISK_BANDWIDTH, RunWork
from grupo.config.time_estimate import DeviceSpeed
from grupo.methods.grpo import grpo
from grupo.methods.sft import sft
from grupo.models.causal_lm import CausalLM
from grupo.models.lora import Lora
from grupo.recipe import Evaluation
from grupo.toy.quickstart import RECIPE
from tests.helpers.small_model_size import MODEL

LENGTHS = TaskLengths(
    count=90, prompt=60, answer=1, long_prompt=50, mean_prompt=5, mean_row=20, held_out=10
)
TOKENS = 2 * 5 + 4 * 15  # two prompts, four answers of 15 tokens
LAYERS, HEAD = 1_000_000 - 50 * 10, 50 * 10
FORWARD = 2 * (LAYERS * TOKENS + HEAD * 4 * 15)  # operations; prompts need no logits
FAST_MEMORY = DeviceSpeed(flops=1e9, bandwidth=1e30)


def work(model=MODEL, lengths=LENGTHS, on_cpu=False, policy=(), ranks=1, **changes):
    recipe = RECIPE.replace(
        policy=CausalLM("m", max_new_tokens=15, **dict(policy)),
        prompts_per_step=2,
        max_steps=30,
        **{"method": grpo(group_size=2, kl_coef=0.0), **changes},
    )
    return RunWork(recipe, model, lengths, 4, on_cpu, ranks)


def passes(**options):
    """Forward passes of a step on a device whose memory is fast."""
    return work(**options).time(FAST_MEMORY).step / (FORWARD / 0.5e9)


def test_a_step_is_a_pass_of_generation_and_three_of_an_update():
    assert passes() == pytest.approx(1 + 1 + 2)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"policy": {"lora": Lora(3)}}, 1 + 1 + 1),  # frozen weights have no gradient
        ({"policy": {"gradient_checkpointing": True}}, 1 + 2 + 2),
        ({"method": grpo(group_size=2, kl_coef=0.1)}, 1 + 1 + 3),  # the reference scores
        ({"method": grpo(group_size=2, kl_coef=0.0).replace(updates=Updates(3, 2))}, 1 + 3 * 3),
        ({"max_staleness": 1}, 1 + 1 + 3),  # old log-probabilities are recomputed
        ({"on_cpu": True}, 1 + 3),  # no Llama
        ({"on_cpu": True, "model": replace(MODEL, is_llama=True)}, 1 + 2),  # activations are kept
    ],
    ids=lambda value: "" if isinstance(value, int) else str(value)[:40],
)
def test_methods_and_policies_need_further_passes_or_fewer(options, expected):
    assert passes(**options) == pytest.approx(expected)


def test_ranks_share_the_rollouts_of_steps_and_evaluations():
    evaluation = Evaluation(attempts=3)
    alone = work(evaluation=evaluation).time(FAST_MEMORY)
    shared = work(evaluation=evaluation, ranks=2).time(FAST_MEMORY)
    assert shared.step == pytest.approx(alone.step / 2)
    assert shared.evaluation == pytest.approx(alone.evaluation / 2)
    three = work(ranks=3).time(FAST_MEMORY).step  # one of two prompts, and two of four answers
    assert three == pytest.approx(4 * 2 * (LAYERS * (5 + 2 * 15) + HEAD * 2 * 15) / 0.5e9)


def test_tokens_beyond_the_activation_cache_need_a_forward_pass(monkeypatch):
    monkeypatch.setattr(run_work, "cache_capacity", lambda model: TOKENS // 2)
    llama = replace(MODEL, is_llama=True)
    assert passes(on_cpu=True, model=llama) == pytest.approx(1 + 3 - 0.5)


def test_an_untied_embedding_is_looked_up_and_not_multiplied():
    untied = replace(MODEL, num_embeddings=2)
    ratio = (LAYERS - HEAD) * TOKENS + HEAD * 60, LAYERS * TOKENS + HEAD * 60
    assert passes(model=untied) == pytest.approx(4 * ratio[0] / ratio[1])


def test_generation_reads_weights_keys_and_values_for_each_token_where_memory_is_slow():
    speed = DeviceSpeed(flops=1e30, bandwidth=1e6)
    rows = 2 * 5 + 4 * 15 / 2  # prompts once, and on average half of each answer
    numbers = 1_000_000 + rows * 8 * 2
    assert work().time(speed).step == pytest.approx(15 * numbers * 4 / 1e6)


def test_prompts_are_computed_before_the_answers_read_the_weights():
    speed = DeviceSpeed(flops=1e9, bandwidth=1e6)  # decoding waits for the memory
    reading = 15 * (1_000_000 + 40 * 8 * 2) * 4 / 1e6
    prompts = 2 * LAYERS * 2 * 5 / 0.5e9
    update = 3 * FORWARD / 0.5e9
    assert work().time(speed).step == pytest.approx(prompts + reading + update, rel=1e-6)


def test_an_evaluation_generates_a_greedy_and_sampled_answers_to_each_task():
    evaluation = work(evaluation=Evaluation(attempts=3)).evaluation(10, 3)
    assert evaluation.rollouts == 10 * 4
    assert evaluation.tokens == 10 * 5 + 40 * 15


def test_prompts_that_the_engine_cannot_hold_together_are_computed_twice(monkeypatch):
    evaluation = Evaluation(attempts=3)
    forward = 2 * (LAYERS * (10 * 5 + 40 * 15) + HEAD * 40 * 15)
    monkeypatch.setattr(run_work, "max_context_tokens", lambda *args, on_cpu: 25)
    assert work(evaluation=evaluation).time(FAST_MEMORY).evaluation == pytest.approx(
        forward / 0.5e9
    )
    monkeypatch.setattr(run_work, "max_context_tokens", lambda *args, on_cpu: 24)
    assert work(evaluation=evaluation).time(FAST_MEMORY).evaluation == pytest.approx(
        (forward + 2 * LAYERS * 10 * 5) / 0.5e9
    )


@pytest.mark.parametrize(("every", "expected"), [(0, 2), (10, 4), (29, 3), (30, 2)])
def test_evaluations_are_before_between_and_after_the_steps(every, expected):
    time = work(evaluation=Evaluation(attempts=3, every=every)).time(FAST_MEMORY)
    assert time.num_evaluations == expected
    forward = 2 * (LAYERS * (10 * 5 + 40 * 15) + HEAD * 40 * 15)
    assert time.evaluations == pytest.approx(expected * forward / 0.5e9)
    assert time.total == pytest.approx(30 * time.step + time.evaluations + time.disk)


def test_a_run_without_held_out_tasks_has_no_evaluation():
    assert not work(lengths=replace(LENGTHS, held_out=0)).time(FAST_MEMORY).evaluations


def test_the_fraction_of_evaluations_is_one_of_operations():
    evaluation = 2 * (LAYERS * (10 * 5 + 40 * 15) + HEAD * 40 * 15)
    expected = 2 * evaluation / (2 * evaluation + 30 * 4 * FORWARD)
    assert work().evaluation_frac(10, 3) == pytest.approx(expected)


def test_demonstrations_are_scored_in_one_pass():
    time = work(method=sft(), evaluation=Evaluation(attempts=0)).time(FAST_MEMORY)
    row = 2 * 20 * (LAYERS + HEAD)  # rows of 20 tokens
    assert time.step == pytest.approx(3 * 2 * row / 0.5e9)
    assert time.evaluations == pytest.approx(2 * 10 * row / 0.5e9)


def test_checkpoints_hold_weights_and_moments():
    time = work(save_every=7).time(FAST_MEMORY)  # 30 steps: four, and one at the end
    assert time.disk == pytest.approx((4e6 + 5 * 12e6) / DISK_BANDWIDTH)
    adapters = work(policy={"lora": Lora(3)}, save_every=30).time(FAST_MEMORY)
    assert adapters.disk == pytest.approx((4e6 + 12 * 2 * 3 * 20) / DISK_BANDWIDTH)
