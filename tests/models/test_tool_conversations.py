"""Tool conversations in the templates of model families, from tokens to tokens."""

import asyncio

import pytest

from grupo.core.call_markers import DEEPSEEK, FUNCTIONGEMMA, GLM
from grupo.core.interfaces import run_rollout
from grupo.core.types import Response, Task
from grupo.envs import MultiTurn
from grupo.envs.tools import Toolbox
from grupo.envs.tools.formats import format_of_template
from grupo.models.chat_tokenizer import ChatTokenizer
from tests.helpers.paths import ROOT
from tests.helpers.tiny_lm import tokenizer
from tests.helpers.tool_call_texts import write_call

CALLS, CALLS_END, CALL, CALL_END, SEPARATOR = DEEPSEEK
TEMPLATES = ROOT / "tests" / "helpers" / "chat_templates"
TASK = Task("key", ({"role": "user", "content": "2 + 3?"},))
# template, special tokens (the end token of a call first), the format, and the text that follows a
# call: its end token, the result, and the beginning of the next answer
FAMILIES = {
    "qwen2_5": (
        ("<|im_end|>", "<|im_start|>"),
        "hermes",
        "<|im_end|>\n<|im_start|>user\n<tool_response>\n5\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n",
    ),
    "qwen3": (
        ("<|im_end|>", "<|im_start|>"),
        "hermes",
        "<|im_end|>\n<|im_start|>user\n<tool_response>\n5\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n",
    ),
    "llama3": (
        ("<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|python_tag|>"),
        "llama",
        "<|eot_id|><|start_header_id|>ipython<|end_header_id|>\n\n5<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
    ),
    "mistral": (
        ("</s>", "<s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[ARGS]", "[TOOL_RESULTS]",
         "[/TOOL_RESULTS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
        "mistral",
        '</s>[TOOL_RESULTS]{"content": 5, "call_id": "000100000"}[/TOOL_RESULTS]',
    ),
    "gpt_oss": (
        ("<|call|>", "<|start|>", "<|end|>", "<|channel|>", "<|message|>", "<|constrain|>"),
        "harmony",
        '<|call|><|start|>functions.add to=assistant<|channel|>commentary<|message|>"5"<|end|>'
        "<|start|>assistant",
    ),
    "qwen3_coder": (
        ("<|im_end|>", "<|im_start|>"),
        "qwen3_coder",
        "<|im_end|>\n<|im_start|>user\n<tool_response>\n5\n</tool_response>\n<|im_end|>\n"
        "<|im_start|>assistant\n",
    ),
    "glm4": (
        ("<|observation|>", "<|user|>", "<|assistant|>", "<tool_call>", "</tool_call>", *GLM),
        "glm",
        "<|observation|>\n<tool_response>\n5\n</tool_response><|assistant|>",
    ),
    "functiongemma": (
        ("<start_function_response>", "<bos>", "<start_of_turn>", *FUNCTIONGEMMA[:3]),
        "functiongemma",
        "<start_function_response>response:add{value:<escape>5<escape>}<end_function_response>",
    ),
}  # fmt: skip


def add(a: int, b: int) -> int:
    """The sum."""
    return a + b


def chat_tokenizer_of(family):
    special, _, _ = FAMILIES[family]
    template = (TEMPLATES / f"{family}.jinja").read_text()
    backend = tokenizer(
        chat_template=template,
        bos_token=special[1],
        eos_token=special[0],
        additional_special_tokens=list(special),
    )
    end = backend.convert_tokens_to_ids(special[0])
    return ChatTokenizer(backend, eos_token_ids=(end,))


class TokenActor:
    """Generates the tokens of given texts, and reads observations in tokens."""

    def __init__(self, chat_tokenizer, *texts):
        self.chat_tokenizer, self.texts = chat_tokenizer, list(texts)

    async def __call__(self, rollout, observation):
        tokens = self.chat_tokenizer.encode_observation(rollout, observation)
        items = self.chat_tokenizer.encode_forced(self.texts.pop(0))
        text = self.chat_tokenizer.decode(items)
        return Response(items, (0.0,) * len(items), tokens, text)


def play(family, *texts):
    """The text of the tokens that the policy read before each answer, and the rollout's turns."""
    chat_tokenizer = chat_tokenizer_of(family)
    _, name, _ = FAMILIES[family]
    toolbox = Toolbox((add,), format=name, described_by="template")
    actor = TokenActor(chat_tokenizer, *texts)
    rollout = asyncio.run(run_rollout(TASK, MultiTurn(toolbox).open(), actor))
    read = [chat_tokenizer.tokenizer.decode(r.observation) for _, r in rollout.turns]
    return read, rollout.turns


@pytest.mark.parametrize("family", FAMILIES)
def test_a_template_has_the_format_of_its_family(family):
    template = (TEMPLATES / f"{family}.jinja").read_text()
    assert format_of_template(template).name == FAMILIES[family][1]


@pytest.mark.slow  # a template is first tried in a process of its own
@pytest.mark.parametrize("family", FAMILIES)
def test_the_template_describes_the_tools_and_gives_the_result_after_the_call(family):
    (end, *_), name, expected = FAMILIES[family]
    call = write_call(name, "add", a=2, b=3).removesuffix(end) + end
    if name == "harmony":  # of the two places for the recipient, the one that its template has
        call = f' to=functions.add<|channel|>commentary json<|message|>{{"a": 2, "b": 3}}{end}'
    if name == "glm":  # the template renders a thought before every answer
        call = f"\n<think></think>\n{call}"
    (prompt, result), turns = play(family, call, f"It is 5.{end}")
    assert "add" in prompt
    assert "2 + 3?" in prompt
    assert end + result.removeprefix(end) == expected
    assert turns[1][0][0]["content"] == "5"


@pytest.mark.parametrize("family", ["mistral", "gpt_oss", "llama3"])
def test_texts_keep_the_special_tokens_of_a_call_and_no_others(family):
    (end, *_), name, _ = FAMILIES[family]
    chat_tokenizer = chat_tokenizer_of(family)
    call = write_call(name, "add", a=2, b=3)
    text = chat_tokenizer.decode(chat_tokenizer.encode_forced(call + end.replace("<|call|>", "")))
    assert text == call
