"""Arguments, files and system prompts of chat templates, and their errors."""

import json

import pytest

from grupo.config.overrides import apply_overrides
from grupo.config.recipe_files.values import make_component
from grupo.core.serialization import from_data, to_data
from grupo.core.types import Rollout, Task
from grupo.models.causal_lm import CausalLM
from grupo.models.chat_template import check_template_kwargs
from grupo.models.loading import load_tokenizer
from grupo.models.masked_diffusion import MaskedDiffusion
from grupo.models.prompt_limit import read_prompt_limit
from grupo.tasks.columns import Columns, task_from_row
from grupo.util.errors import ConfigError
from tests.helpers import tiny_masked_lm
from tests.helpers.template_families import FOLDER, family_chat_tokenizer, tokenizer_options
from tests.helpers.tiny_lm import ALPHABET, save_model

KWARGS = {"enable_thinking": False}
QWEN2_5 = str(FOLDER / "qwen2_5.jinja")
USER = ({"role": "user", "content": "Hi"},)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A model of each kind, with Qwen3's template."""
    path = tmp_path_factory.mktemp("models")
    size = {"vocab_size": len(ALPHABET) + 3, "max_position_embeddings": 400}
    options = tokenizer_options("qwen3")
    causal = save_model(path / "causal", tokenizer_options=options, **size)
    masked = tiny_masked_lm.save_model(path / "masked", size=size, **options)
    return {CausalLM: str(causal), MaskedDiffusion: str(masked)}


@pytest.fixture(scope="module")
def folder(folders):
    return folders[CausalLM]


def prompt_text(spec, prompt):
    tokens = read_prompt_limit(spec).encode(Rollout(), prompt)
    return load_tokenizer(spec.model).decode(tokens)


@pytest.mark.parametrize("policy", [CausalLM, MaskedDiffusion])
def test_arguments_of_the_policy_reach_the_template_and_those_of_a_task_replace_them(
    folders, policy
):
    spec = policy(folders[policy], max_new_tokens=8, chat_template_kwargs=KWARGS)
    assert prompt_text(spec, USER).endswith("<think>\n\n</think>\n\n")
    row = {"prompt": "Hi", "chat_template_kwargs": '{"enable_thinking": true}'}
    task = task_from_row(row, Columns(), "row 1")
    assert prompt_text(spec, task.prompt).endswith("assistant\n")


def test_the_same_prompt_with_other_arguments_is_another_task():
    rows = [{"prompt": "Hi", "chat_template_kwargs": kwargs} for kwargs in (None, {}, KWARGS)]
    keys = [task_from_row(row, Columns(), "row 1").key for row in rows]
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize("policy", [CausalLM, MaskedDiffusion])
def test_a_file_replaces_the_models_template(folders, policy):
    spec = policy(folders[policy], max_new_tokens=8, chat_template=QWEN2_5)
    assert prompt_text(spec, USER).startswith(
        "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud."
    )


@pytest.mark.parametrize("policy", [CausalLM, MaskedDiffusion])
def test_the_exported_tokenizer_has_the_template_of_the_file(folders, policy, tmp_path):
    file = tmp_path / "own.jinja"
    file.write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    built = policy(folders[policy], max_new_tokens=8, chat_template=str(file)).build()
    (tokenizer,) = built.saveables
    assert tokenizer.chat_template == file.read_text()


@pytest.mark.parametrize("policy", [CausalLM, MaskedDiffusion])
def test_a_system_prompt_stands_before_prompts_without_one(folders, policy):
    fields = {"apply_chat_template": True, "system_prompt": "Be brief."}
    spec = policy(folders[policy], max_new_tokens=8, **fields)
    assert prompt_text(spec, "Hi").startswith(
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi"
    )


LOOPS = "{% if slow %}" + "{% for i in range(99999) %}" * 3 + "{% endfor %}" * 3 + "{% endif %}"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"chat_template_kwargs": {"enable_thinkin": False}},
            r"^chat_template_kwargs: .* reads no variable 'enable_thinkin'\. Did you mean"
            r" 'enable_thinking'\?",
        ),
        (
            {"chat_template_kwargs": {"messages": ()}},
            r"^chat_template_kwargs: .*'messages'\. Allowed: enable_thinking",
        ),
        ({"chat_template": "/dev/zero"}, r"^chat_template: '/dev/zero' is a device"),
        ({"chat_template": "x.jinja"}, r"^chat_template: there is no file 'x\.jinja'\. Allowed: a"),
        (
            {"chat_template": QWEN2_5.replace("5.", "4.")},
            r"^chat_template: .* Did you mean 'qwen2_5\.jinja'\?",
        ),
        ({"system_prompt": "Be brief."}, r"^system_prompt: 'Be brief\.', and a prompt is plain"),
        ({"chat_template_kwargs": KWARGS}, r"^chat_template_kwargs: .*, and a prompt is plain"),
        ({"chat_template": QWEN2_5}, r"^chat_template: '.*qwen2_5\.jinja', and a prompt is plain"),
    ],
)
@pytest.mark.parametrize("policy", [CausalLM, MaskedDiffusion])
def test_options_that_cannot_work_are_refused_before_the_weights_are_read(
    folders, policy, fields, message
):
    spec = policy(folders[policy], max_new_tokens=8, **fields)
    with pytest.raises(ConfigError, match=message):
        read_prompt_limit(spec).surely_fits(Task("k", "plain"))


def test_an_argument_that_makes_the_template_loop_is_one_error(folder, tmp_path):
    file = tmp_path / "slow.jinja"
    file.write_text(LOOPS + "{{ messages }}")
    spec = CausalLM(folder, max_new_tokens=8, chat_template=str(file))
    assert read_prompt_limit(spec)
    slow = {"chat_template": str(file), "chat_template_kwargs": {"slow": True}}
    limit = read_prompt_limit(CausalLM(folder, max_new_tokens=8, **slow))
    with pytest.raises(ConfigError, match=r"its chat template takes more than 2 s"):
        limit.surely_fits(Task("k", USER))


def test_an_unknown_argument_of_a_task_names_the_task(folder):
    row = {"prompt": "Hi", "chat_template_kwargs": {"thinking": 1}}
    task = task_from_row(row, Columns(), "rows.jsonl, line 3")
    limit = read_prompt_limit(CausalLM(folder, max_new_tokens=8))
    with pytest.raises(ConfigError, match=r"'thinking'\. .*enable_thinking.*rows\.jsonl, line 3"):
        limit.surely_fits(task)


@pytest.mark.parametrize("value", ["{'a'", "[1]", 3, {1: 2}])
def test_a_column_of_no_arguments_is_refused(value):
    with pytest.raises(ConfigError, match=r"^row 1, column 'chat_template_kwargs' is .*Allowed"):
        task_from_row({"prompt": "Hi", "chat_template_kwargs": value}, Columns(), "row 1")


def test_a_long_system_prompt_counts_towards_the_prompt(folder):
    spec = CausalLM(folder, max_new_tokens=8, system_prompt=350 * "a", apply_chat_template=True)
    task = Task("k", "Hi")
    assert not read_prompt_limit(spec).surely_fits(task)
    assert read_prompt_limit(CausalLM(folder, max_new_tokens=8)).surely_fits(task)


SPEC = CausalLM("model", chat_template_kwargs={"enable_thinking": False, "builtin": ("a", "b")})


@pytest.mark.parametrize(
    "overrides",
    [
        [("chat_template_kwargs", '{"enable_thinking": false, "builtin": ["a", "b"]}')],
        [("chat_template_kwargs", "{'enable_thinking': False, 'builtin': ('a', 'b')}")],
        [
            ("chat_template_kwargs.enable_thinking", "false"),
            ("chat_template_kwargs.builtin", "['a', 'b']"),
        ],
    ],
)
def test_the_command_line_takes_arguments_in_pythons_notation_and_in_that_of_json(overrides):
    assert apply_overrides(CausalLM("model"), overrides) == SPEC


def test_recipes_in_files_and_in_json_hold_arguments():
    table = {"enable_thinking": False, "builtin": ["a", "b"]}
    values = {"model": "model", "chat_template_kwargs": table}
    assert make_component(CausalLM, values, "policy") == SPEC
    assert from_data(json.loads(json.dumps(to_data(SPEC)))) == SPEC


def test_a_value_that_is_no_mapping_is_refused():
    with pytest.raises(ConfigError, match=r"chat_template_kwargs: 3\. Allowed: values by name"):
        CausalLM("model", chat_template_kwargs=3)


def test_templates_of_functions_and_special_tokens_have_no_argument_of_their_name():
    tokenizer = family_chat_tokenizer("llama3").tokenizer
    for name in ("strftime_now", "raise_exception", "bos_token", "namespace"):
        with pytest.raises(ConfigError, match=f"reads no variable '{name}'"):
            check_template_kwargs(tokenizer, {name: 1})
    check_template_kwargs(tokenizer, {"date_string": "26 Jul 2024", "custom_tools": ()})
