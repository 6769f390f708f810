"""The policy reads what transformers renders, token for token, with templates of families."""

import pytest

from grupo.core.call_markers import DEEPSEEK
from grupo.core.template_options import with_template_kwargs, with_tools
from grupo.core.types import Response, Rollout
from tests.helpers.template_families import FAMILIES, family_chat_tokenizer
from tests.helpers.tool_call_texts import write_call

CALLS, CALLS_END, CALL, CALL_END, SEPARATOR = DEEPSEEK

ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Adds.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer", "description": "A number."}},
            "required": ["a"],
        },
    },
}
SYSTEM = {"role": "system", "content": "Be brief."}
USER = {"role": "user", "content": "What is 2+2?"}
AGAIN = {"role": "user", "content": "And 3+3?"}
TOOL = {"role": "tool", "content": "4"}
THOUGHT = "<think>\nA sum.\n</think>\n\n4"
HARMONY_THOUGHT = (
    "<|channel|>analysis<|message|>A sum.<|end|><|start|>assistant<|channel|>final<|message|>4"
)
HARMONY_CALL = (
    "<|channel|>analysis<|message|>A sum.<|end|><|start|>assistant to=functions.add"
    '<|channel|>commentary json<|message|>{"a": 4}'
)
HARMONY_CALLED = {"function": {"name": "add", "arguments": '{"a": 4}'}}
CALL_ENDS = ("gpt_oss", "glm4", "functiongemma")  # their second end token ends a call
NAMED = {**TOOL, "name": "add"}
XML_CALL = write_call("qwen3_coder", "add", a=4)
GLM_CALL = f"\n<think>A sum.</think>\n{write_call('glm', 'add', a=4, b='so')}"
V31_CALL = write_call("deepseek", "add", a=4)
V3_CALL = f'{CALLS}{CALL}function{SEPARATOR}add\n```json\n{{"a": 4}}\n```{CALL_END}{CALLS_END}'
GEMMA_CALL = write_call("functiongemma", "add", a=4)
WITHOUT_TOOLS = {"gemma3", "phi4", "deepseek_v3", "deepseek_v31"}
THINKING = {"thinking": True}
QWEN_CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 4}}\n</tool_call>'


def said(content, **more):
    return {"role": "assistant", "content": content, **more}


# family, first messages, answer, its message, later messages, arguments, whether the rollout forks
CASES = {
    "qwen2.5, question": ("qwen2_5", (USER,), "4", said("4"), (AGAIN,), {}, False),
    "qwen2.5, tool": ("qwen2_5", (USER,), QWEN_CALL, said(QWEN_CALL), (TOOL, TOOL), {}, False),
    "qwen3, thought": ("qwen3", (USER,), THOUGHT, said(THOUGHT), (AGAIN,), {}, True),
    "qwen3, thought before a tool": ("qwen3", (USER,), THOUGHT, said(THOUGHT), (TOOL,), {}, False),
    "qwen3, no thought": ("qwen3", (SYSTEM, USER), "4", said("4"), (AGAIN,), {}, False),
    "qwen3, thinking off": (
        *("qwen3", (USER,), "4", said("4"), (AGAIN,)),
        *({"enable_thinking": False}, True),
    ),
    "llama3, question": ("llama3", (USER,), "4", said("4"), (AGAIN,), {}, False),
    "llama3, tool": (
        *("llama3", (SYSTEM, USER), '{"name": "add"}', said('{"name": "add"}'), (TOOL,)),
        *({"date_string": "26 Jul 2024"}, False),
    ),
    "gemma3, question": ("gemma3", (SYSTEM, USER), "4", said("4"), (AGAIN,), {}, False),
    "mistral, question": ("mistral", (USER,), "4", said("4"), (AGAIN,), {}, False),
    "mistral, system prompt": ("mistral", (SYSTEM, USER), "4", said("4"), (AGAIN,), {}, True),
    "phi4, question": ("phi4", (SYSTEM, USER), "4", said("4"), (AGAIN,), {}, False),
    "smollm3, thought": ("smollm3", (USER,), THOUGHT, said(THOUGHT), (AGAIN,), {}, False),
    "smollm3, thinking off": (
        *("smollm3", (USER,), "4", said("4"), (AGAIN,)),
        *({"enable_thinking": False}, False),
    ),
    "gpt-oss, thought": (
        *("gpt_oss", (USER,), HARMONY_THOUGHT, said("4", thinking="A sum."), (AGAIN,)),
        *({"reasoning_effort": "low"}, True),
    ),
    "gpt-oss, call": (
        *("gpt_oss", (USER,), HARMONY_CALL),
        *(said("", thinking="A sum.", tool_calls=[HARMONY_CALLED]), (TOOL,), {}, False),
    ),
    "qwen3-coder, question": ("qwen3_coder", (USER,), "4", said("4"), (AGAIN,), {}, False),
    "qwen3-coder, call": (
        *("qwen3_coder", (USER,), XML_CALL, said(XML_CALL), (TOOL, TOOL), {}, False),
    ),
    "glm, question": (
        *("glm4", (SYSTEM, USER), "\n<think></think>\n4", said("4"), (AGAIN,), {}, False),
    ),
    "glm, thought": ("glm4", (USER,), THOUGHT, said(THOUGHT), (AGAIN,), {}, True),
    "glm, thinking off": (
        *("glm4", (USER,), "\n4", said("4"), (AGAIN,), {"enable_thinking": False}, False),
    ),
    "glm, call": ("glm4", (USER,), GLM_CALL, said(GLM_CALL), (TOOL, TOOL), {}, False),
    "deepseek-v3, question": ("deepseek_v3", (SYSTEM, USER), "4", said("4"), (AGAIN,), {}, False),
    "deepseek-v3, call": (
        *("deepseek_v3", (USER,), V3_CALL, said(V3_CALL), (TOOL, TOOL), {}, False),
    ),
    "deepseek-v3.1, question": ("deepseek_v31", (USER,), "4", said("4"), (AGAIN,), {}, False),
    "deepseek-v3.1, thought": (
        *("deepseek_v31", (USER,), "A sum.</think>4", said("A sum.</think>4"), (AGAIN,)),
        *(THINKING, True),
    ),
    "deepseek-v3.1, call": (
        *("deepseek_v31", (SYSTEM, USER), V31_CALL, said(V31_CALL), (TOOL, TOOL), {}, False),
    ),
    "functiongemma, question": ("functiongemma", (USER,), "4", said("4"), (AGAIN,), {}, False),
    "functiongemma, call": (
        *("functiongemma", (USER,), GEMMA_CALL),
        *(said("", tool_calls=[{"function": {"name": "add", "arguments": {"a": 4}}}]),),
        *((NAMED, NAMED), {}, False),
    ),
}


def rendered(chat_tokenizer, messages, tools=None, **kwargs):
    """The tokens of a prompt by transformers alone."""
    tokenizer = chat_tokenizer.tokenizer
    text = tokenizer.apply_chat_template(
        [dict(m) for m in messages],
        tools=tools,
        add_generation_prompt=True,
        tokenize=False,
        **kwargs,
    )
    return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])


def answered(chat_tokenizer, first, text, end=0):
    """A rollout of one answer."""
    prompt = chat_tokenizer.encode_observation(Rollout(), first)
    items = (*chat_tokenizer.encode_forced(text), chat_tokenizer.eos_token_ids[end])
    return Rollout().append_turn(first, Response(items, (-1.0,) * len(items), prompt))


def context_after(rollout, encoded):
    """The tokens that the policy reads after an encoded observation."""
    ((_, response),) = rollout.turns
    before = () if encoded.rewrites_history else (*response.observation, *response.items)
    return (*before, *encoded.tokens)


@pytest.mark.parametrize("case", CASES)
def test_the_policy_reads_the_rendered_chat_and_forks_where_it_is_rewritten(case):
    family, first, text, message, later, kwargs, forks = CASES[case]
    chat_tokenizer = family_chat_tokenizer(family)
    prompt = with_template_kwargs(first, kwargs)
    rollout = answered(chat_tokenizer, prompt, text, end="call" in case and family in CALL_ENDS)
    assert rollout.turns[0][1].observation == rendered(chat_tokenizer, first, **kwargs)
    encoded = chat_tokenizer.encode_turn(rollout, later)
    assert encoded.rewrites_history == forks
    whole = rendered(chat_tokenizer, (*first, message, *later), **kwargs)
    assert context_after(rollout, encoded) == whole


@pytest.mark.parametrize("family", sorted(FAMILIES.keys() - WITHOUT_TOOLS))
def test_tools_of_a_prompt_are_described_in_every_rendering(family):
    chat_tokenizer = family_chat_tokenizer(family)
    first = with_tools((USER,), [ADD])
    rollout = answered(chat_tokenizer, first, "4" if family != "gpt_oss" else HARMONY_THOUGHT)
    assert rollout.turns[0][1].observation == rendered(chat_tokenizer, (USER,), [ADD])
    encoded = chat_tokenizer.encode_turn(rollout, (AGAIN,))
    whole = rendered(chat_tokenizer, (USER, said("4"), AGAIN), [ADD])
    assert context_after(rollout, encoded) == whole


def test_a_text_of_tools_in_a_message_stays_there():
    chat_tokenizer = family_chat_tokenizer("phi4")
    first = ({**SYSTEM, "tools": '[{"name": "add"}]'}, USER)
    tokens = chat_tokenizer.encode_observation(Rollout(), first)
    assert '<|tool|>[{"name": "add"}]<|/tool|>' in chat_tokenizer.tokenizer.decode(tokens)


def test_an_opened_thought_is_part_of_the_answer_before_it():
    """The prompt of some models begins a thought, which their history keeps or leaves out."""
    chat_tokenizer = family_chat_tokenizer("qwen3")
    chat_tokenizer.tokenizer.chat_template += "{{- '<think>\n' if add_generation_prompt -}}"
    rollout = answered(chat_tokenizer, (USER,), "A sum.\n</think>\n\n4")
    encoded = chat_tokenizer.encode_turn(rollout, (TOOL,))
    assert not encoded.rewrites_history
    whole = rendered(chat_tokenizer, (USER, said(THOUGHT), TOOL))
    assert context_after(rollout, encoded) == whole


@pytest.mark.parametrize(
    "text", ["<think>A sum.</think>4", "\n4 ", "<think>\n\nA sum.\n</think>\n4"]
)
def test_white_space_around_thoughts_and_answers_does_not_fork(text):
    chat_tokenizer = family_chat_tokenizer("qwen3")
    rollout = answered(chat_tokenizer, (USER,), text)
    encoded = chat_tokenizer.encode_turn(rollout, (TOOL,))
    assert not encoded.rewrites_history
    added = chat_tokenizer.tokenizer.decode(encoded.tokens)
    assert added.startswith("\n<|im_start|>user\n<tool_response>")


@pytest.mark.parametrize("family", sorted(FAMILIES.keys() - {"gemma3", "mistral"}))
def test_the_system_prompt_precedes_prompts_that_have_none(family):
    chat_tokenizer = family_chat_tokenizer(family, system_prompt="Be brief.")
    with_system = rendered(chat_tokenizer, (SYSTEM, USER))
    assert chat_tokenizer.encode_observation(Rollout(), (USER,)) == with_system
    assert chat_tokenizer.encode_observation(Rollout(), (SYSTEM, USER)) == with_system
