"""Defaults that depend on the model, on configurations of real architectures."""

import json

import pytest

from grupo.algo.minibatches import Updates
from grupo.config.defaults import (
    Choice,
    TaskLengths,
    choose_defaults,
    measure_tasks,
    with_choices,
    with_counted_prompts,
)
from grupo.core.types import Task
from grupo.methods.dapo import dapo
from grupo.models.lora import Lora
from grupo.models.model_size import read_model_size
from grupo.tasks.overlong import drop, error, truncate
from grupo.toy.quickstart import RECIPE

SMOLLM2_135M = {
    **{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 49152},
    **{"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30},
    **{"num_attention_heads": 9, "num_key_value_heads": 3, "tie_word_embeddings": True},
    **{"max_position_embeddings": 8192},
}
QWEN_05B = {
    **{"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "vocab_size": 151936},
    **{"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24},
    **{"num_attention_heads": 14, "num_key_value_heads": 2, "tie_word_embeddings": True},
    **{"max_position_embeddings": 32768},
}
LLAMA_1B = {
    **{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 128256},
    **{"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16},
    **{"num_attention_heads": 32, "num_key_value_heads": 8, "tie_word_embeddings": True},
    **{"head_dim": 64, "max_position_embeddings": 131072},
}
QWEN_8B = {
    **{"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "vocab_size": 151936},
    **{"hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36},
    **{"num_attention_heads": 32, "num_key_value_heads": 8, "tie_word_embeddings": False},
    **{"head_dim": 128, "max_position_embeddings": 40960},
}
TOY = {**LLAMA_1B, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1}
TOY |= {"vocab_size": 100, "max_position_embeddings": 64, "head_dim": 2}
TASKS = TaskLengths(count=5000, prompt=40, answer=3, long_prompt=40)


@pytest.fixture
def size_of(tmp_path):
    def size(config: dict):
        (tmp_path / "config.json").write_text(json.dumps(config))
        return read_model_size(str(tmp_path))

    return size


def chosen(model, fields_set=(), tasks=TASKS, *, precision=(), **changes):
    recipe = RECIPE.replace(**changes)
    choices = choose_defaults(recipe, fields_set, model, tasks, precision=precision)
    return with_choices(recipe, choices)


@pytest.mark.parametrize(
    ("config", "billions"), [(QWEN_05B, 0.494), (LLAMA_1B, 1.236), (QWEN_8B, 8.191)]
)
def test_parameters_are_those_of_the_published_models(size_of, config, billions):
    assert size_of(config).num_parameters / 1e9 == pytest.approx(billions, abs=5e-4)


def test_adapters_have_rank_times_inputs_and_outputs(size_of):
    model = size_of(QWEN_05B)
    assert model.num_adapter_parameters(8, ("q_proj",)) == 24 * 8 * (896 + 896)


@pytest.mark.parametrize(
    ("config", "lora", "rate"),
    [
        (SMOLLM2_135M, None, 1e-5),
        (SMOLLM2_135M, Lora(), 1e-4),
        (QWEN_05B, None, 1e-6),
        (QWEN_05B, Lora(), 2e-5),
        (QWEN_8B, Lora(), 1e-5),
    ],
)
def test_learning_rate_depends_on_size_and_adapters(size_of, config, lora, rate):
    policy = RECIPE.policy.__class__("model", lora=lora)
    assert chosen(size_of(config), policy=policy).learning_rate == rate


@pytest.mark.parametrize(("config", "expected"), [(QWEN_05B, False), (LLAMA_1B, True)])
def test_models_from_one_billion_parameters_have_gradient_checkpointing(size_of, config, expected):
    assert chosen(size_of(config)).policy.gradient_checkpointing == expected


@pytest.mark.parametrize(("fields_set", "dtype"), [((), "bfloat16"), (["policy.dtype"], "float32")])
def test_the_chosen_precision_unless_the_user_sets_another(size_of, fields_set, dtype):
    precision = [Choice("policy.dtype", "bfloat16", "a reason")]
    assert chosen(size_of(QWEN_05B), fields_set, precision=precision).policy.dtype == dtype


def test_answer_length_is_the_methods_own(size_of):
    recipe = chosen(size_of(QWEN_05B), ["method"], method=dapo(1024, 64))
    assert recipe.policy.max_new_tokens == 1024


def test_answer_length_is_twice_a_long_reference_answer(size_of):
    tasks = TaskLengths(count=5000, prompt=40, answer=700, long_prompt=40)
    assert chosen(size_of(QWEN_05B), tasks=tasks).policy.max_new_tokens == 2048


def answer_choice(model, tasks, method=RECIPE.method, is_chat_model=True):
    """The choice of the length of an answer."""
    recipe = RECIPE.replace(method=method)
    first, *_ = choose_defaults(recipe, ["method"], model, tasks, is_chat_model=is_chat_model)
    return first


@pytest.mark.parametrize(
    ("prompt", "answer", "expected"),
    [
        (26, 1, 128),  # 4 x 27 = 108
        (4, 1, 64),  # the fewest
        (31, 1, 128),  # 4 x 32
        (32, 1, 256),
        (100, 3, 512),  # 4 x 103 = 412
        (400, 3, 512),  # as without a limit by the prompt
        (4, 16, 128),  # 4 x 20 = 80
        (4, 17, 512),  # no short answer
        (4, 0, 512),  # no reference answers
    ],
)
def test_a_chat_model_answers_short_questions_with_short_answers_briefly(
    size_of, prompt, answer, expected
):
    tasks = TaskLengths(count=5000, prompt=600, answer=answer, long_prompt=prompt)
    choice = answer_choice(size_of(QWEN_05B), tasks)
    assert choice.value == expected
    if expected < 512:
        assert f"4 times a long prompt and its short answer, about {prompt + answer}" in str(choice)
    assert answer_choice(size_of(QWEN_05B), tasks, is_chat_model=False).value == 512


def test_short_answers_do_not_cut_the_length_of_a_method(size_of):
    tasks = TaskLengths(count=5000, prompt=26, answer=1, long_prompt=26)
    assert answer_choice(size_of(QWEN_05B), tasks, dapo(1024, 64)).value == 1024


def test_a_small_data_set_is_one_step_of_all_tasks(size_of):
    recipe = chosen(
        size_of(QWEN_05B), tasks=TaskLengths(count=5, prompt=4, answer=1, long_prompt=4)
    )
    assert (recipe.prompts_per_step, recipe.max_steps) == (5, 50)


def test_prompts_fill_the_minibatches_of_the_update_plan(size_of):
    method = RECIPE.method.replace(updates=Updates(1, 32))
    assert chosen(size_of(QWEN_05B), method=method).prompts_per_step == 32


def test_fields_that_the_user_set_are_kept(size_of):
    fields = ["learning_rate", "policy", "method", "max_steps", "prompts_per_step"]
    assert chosen(size_of(QWEN_05B), fields) == RECIPE


def test_a_toy_keeps_the_quickstarts_numbers_but_for_the_answer_length(size_of):
    recipe = chosen(size_of(TOY))
    assert recipe.policy.max_new_tokens == 24  # 64 less prompts of 40 tokens
    assert recipe.learning_rate == RECIPE.learning_rate


@pytest.mark.parametrize(
    ("overlong", "prompt", "long_prompt", "expected"),
    [
        (error, 40, 20, 24),  # 64 less the longest prompt
        (error, 57, 20, 32),  # the longest prompt leaves less than an eighth: the run is refused
        (error, 500, 20, 32),
        (drop, 500, 40, 24),  # 64 less a long prompt; longer ones are dropped
        (truncate, 500, 400, 32),
    ],
)
def test_prompts_that_leave_no_room_do_not_shorten_answers(
    size_of, overlong, prompt, long_prompt, expected
):
    tasks = TaskLengths(count=5000, prompt=prompt, answer=3, long_prompt=long_prompt)
    recipe = chosen(size_of(TOY), tasks=tasks, overlong=overlong)
    assert recipe.policy.max_new_tokens == expected


def test_a_long_prompt_is_longer_than_nineteen_of_twenty():
    tasks = [Task("short", "x" * 40)] * 20 + [Task("long", "x" * 4000)]
    lengths = measure_tasks(tasks)
    assert lengths.long_prompt == measure_tasks(tasks[:20]).prompt
    assert lengths.prompt > 1000


def test_counted_prompts_replace_estimates_of_characters():
    tasks = [Task(str(i), "1 " * (10 + i), "42") for i in range(3)]  # a token each, half of them
    lengths = with_counted_prompts(measure_tasks(tasks), tasks, lambda task: len(task.prompt))
    assert (lengths.prompt, lengths.long_prompt, lengths.mean_prompt) == (24, 22, 22)
    assert lengths.mean_row == 22 + 1  # an answer of two characters
    assert lengths.answer == measure_tasks(tasks).answer
    assert with_counted_prompts(lengths, [], len) == lengths
