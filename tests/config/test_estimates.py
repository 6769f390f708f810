"""Estimates of memory, computed step by step for a small model."""

from dataclasses import replace

import pytest

from grupo.algo.ema import EMA
from grupo.algo.optimizers import SGD, Adam, Adam8bit, Muon
from grupo.config.memory_estimate import estimate_memory
from grupo.config.step_size import StepSize
from grupo.methods.grpo import grpo
from grupo.models.causal_lm import CausalLM
from grupo.models.lora import Lora
from grupo.models.quantization import Nf4
from grupo.models.sharding import FSDP2
from grupo.toy.quickstart import RECIPE
from tests.helpers.small_model_size import MODEL

STEP = StepSize(prompts=2, rollouts=4, prompt=5, answer=15)
TOKENS = 2 * 5 + 4 * 15


def estimate(compute_bytes=4, method=RECIPE.method, ranks=1, **policy):
    recipe = RECIPE.replace(policy=CausalLM("m", **policy), method=method)
    return estimate_memory(recipe, MODEL, STEP, compute_bytes, on_cpu=False, ranks=ranks)


def test_full_training_holds_weights_gradients_and_two_moments():
    memory = estimate()
    assert (memory.weights, memory.gradients, memory.optimizer) == (4e6, 4e6, 8e6)


def test_adapters_hold_gradients_and_moments_of_their_own_weights_only():
    memory = estimate(compute_bytes=2, lora=Lora(3))
    trained = 2 * 3 * (10 + 10)
    assert memory.weights == 2e6 + 4 * trained
    assert (memory.gradients, memory.optimizer) == (4 * trained, 8 * trained)


@pytest.mark.parametrize(
    ("optimizer", "bytes_per_parameter"),
    [(Adam(), 8), (Adam8bit(), 2), (SGD(), 0), (SGD(momentum=0.9), 4), (Muon(), 4)],
    ids=str,
)
def test_the_optimizer_holds_its_own_state(optimizer, bytes_per_parameter):
    recipe = RECIPE.replace(policy=CausalLM("m"), optimizer=optimizer)
    memory = estimate_memory(recipe, MODEL, STEP, 4, on_cpu=False)
    assert memory.optimizer == bytes_per_parameter * 1e6


def test_quantized_layers_take_4_bits_and_a_scale_per_64_weights():
    full = estimate(compute_bytes=2, lora=Lora(3)).weights
    plain = estimate(compute_bytes=2, lora=Lora(3), quantization=Nf4(double_quantization=False))
    double = estimate(compute_bytes=2, lora=Lora(3), quantization=Nf4())
    assert full - plain.weights == 200 * (2 - 0.5 - 4 / 64)
    assert full - double.weights == 200 * (2 - 0.5 - 1 / 64 - 4 / 64 / 256)


def test_logits_and_norms_in_bfloat16_are_there_beside_their_float32_copies():
    full, half = estimate(), estimate(compute_bytes=2)
    assert half.logits - full.logits == 2 * (4 * 15) * 50
    outputs, norms = 1.5 * 20, 2 * 2 * 10  # per token; two layers
    assert full.activations - half.activations == TOKENS * (2 * outputs - 2 * norms)


def test_a_moving_average_is_a_further_copy_of_the_trained_weights():
    recipe = RECIPE.replace(policy=CausalLM("m"), ema=EMA())
    memory = estimate_memory(recipe, MODEL, STEP, 4, on_cpu=False)
    assert memory.weights - estimate().weights == 4e6


def test_ranks_divide_sharded_weights_gradients_and_moments():
    memory = estimate(ranks=4, sharding=FSDP2())
    # a copy, a fourth, and with gradients those gathered outside of layers and in two layers
    assert memory.weights == 4e6 + 4e6 / 4 + 2 * 4 * (1e6 - 200 + 200)
    assert (memory.gradients, memory.optimizer) == (4e6 / 4, 8e6 / 4)


def test_adapters_on_sharded_weights_need_no_gradients_of_gathered_ones():
    memory = estimate(compute_bytes=2, ranks=4, lora=Lora(3), sharding=FSDP2())
    stored = 2e6 + 4 * 120  # 120 numbers in adapters
    assert memory.weights == stored + stored / 4 + 2 * 1e6
    assert memory.optimizer == 8 * 120 / 4


def test_sharded_weights_in_bfloat16_are_copied_and_gathered_in_half_of_the_memory():
    sharding = FSDP2(param_dtype="bfloat16")
    memory = estimate(compute_bytes=2, ranks=4, dtype="bfloat16", sharding=sharding)
    assert memory.weights == 2e6 + 4e6 / 4 + 2 * 2 * 1e6


def test_one_rank_with_sharding_needs_what_it_needs_without():
    assert estimate(sharding=FSDP2()) == estimate()


def test_a_kl_penalty_adds_the_reference_policy():
    assert estimate(method=grpo(kl_coef=0.1)).weights - estimate().weights == 4e6


def test_activations_grow_with_the_microbatch_and_shrink_with_checkpointing():
    row = estimate(tokens_per_microbatch=20)
    assert estimate(tokens_per_microbatch=40).activations == 2 * row.activations
    checkpointed = estimate(tokens_per_microbatch=20, gradient_checkpointing=True)
    inputs, one_layer, gradients = 2 * 10, 1.5 * 10 + 6 * 10, 10  # numbers per token
    assert checkpointed.activations == 20 * 4 * (inputs + one_layer + gradients)
    assert checkpointed.activations < row.activations


def test_a_microbatch_holds_at_least_one_row():
    assert estimate(tokens_per_microbatch=1) == estimate(tokens_per_microbatch=20)


def test_kv_cache_holds_every_answer_and_every_prompt_once():
    assert estimate().kv_cache == 4 * TOKENS * 8 * 2


@pytest.mark.parametrize(("tasks", "tokens"), [(1, TOKENS), (50, 50 * (STEP.prompt + 8 * 5))])
def test_kv_cache_is_that_of_an_evaluation_that_is_larger_than_a_step(tasks, tokens):
    evaluation = replace(STEP, prompts=tasks, rollouts=8 * tasks, answer=5)
    memory = estimate_memory(RECIPE, MODEL, STEP, 4, on_cpu=False, evaluation=evaluation)
    assert memory.kv_cache == 4 * tokens * 8 * 2


def test_kv_cache_of_a_cpu_is_limited_as_its_engine_is():
    wide = replace(MODEL, kv_size=11_520)  # 92,160 bytes a token: 8,192 tokens in a gigabyte
    many = replace(STEP, rollouts=20_000)
    memory = estimate_memory(RECIPE, wide, many, 4, on_cpu=True)
    assert memory.kv_cache == 8_192 * 92_160


def test_the_kernels_of_the_cpu_keep_activations_and_logits_of_a_step_and_copy_the_weights():
    model = replace(MODEL, is_llama=True)
    memory = estimate_memory(RECIPE, model, STEP, 4, on_cpu=True)
    activations = TOKENS * (2 * (10 + 10) + 10)  # two layers, and the output of the last one
    logits = 4 * 15 * 50
    assert memory.kernel_cache == 4 * (activations + logits + 1_000_000)


def test_the_kernels_hold_the_activations_of_one_layer_three_times_in_an_update():
    model = replace(MODEL, is_llama=True)
    memory = estimate_memory(RECIPE, model, STEP, 4, on_cpu=True)
    assert memory.activations == 4 * TOKENS * 3 * (10 + 10)
    assert memory.logits == 4 * (4 * 15 * 50)  # a chunk holds all of them


def test_steps_larger_than_the_caches_of_the_kernels_keep_a_recomputed_microbatch():
    model = replace(MODEL, is_llama=True)
    # 2 layers x 20 numbers, 10 of the output, and 50 logits are kept for each token
    capacity = (3 << 28) // (2 * 20 + 10 + 50)
    fits = replace(STEP, rollouts=1, prompts=1, prompt=0, answer=capacity)
    larger = replace(fits, answer=capacity + 1)
    recipe = RECIPE.replace(policy=CausalLM("m", tokens_per_microbatch=1 << 40))
    small, large = (estimate_memory(recipe, model, s, 4, on_cpu=True) for s in (fits, larger))
    assert large.kernel_cache == small.kernel_cache
    assert large.activations - small.activations == pytest.approx(4 * (1 << 28), rel=1e-6)


@pytest.mark.parametrize(
    "changes", [{"on_cpu": False}, {"lora": Lora(3), "quantization": Nf4()}], ids=str
)
def test_without_the_kernels_nothing_of_generation_is_kept(changes):
    model = replace(MODEL, is_llama=True)
    policy = {name: value for name, value in changes.items() if name != "on_cpu"}
    recipe = RECIPE.replace(policy=CausalLM("m", **policy))
    on_cpu = changes.get("on_cpu", True)
    assert estimate_memory(recipe, model, STEP, 4, on_cpu=on_cpu).kernel_cache == 0


def test_the_kernels_keep_as_much_with_adapters():
    model = replace(MODEL, is_llama=True)
    recipe = RECIPE.replace(policy=CausalLM("m", Lora(3)))
    memory, without = (estimate_memory(x, model, STEP, 4, on_cpu=True) for x in (recipe, RECIPE))
    assert memory.kernel_cache == without.kernel_cache > 0
    assert memory.activations == without.activations
