"""Warnings about chat templates and about control tokens in prompts."""

from dataclasses import replace

import pytest

from grupo.core.types import Task
from grupo.models.prompt_warnings import prompt_warnings
from tests.helpers.template_families import FAMILIES, family_chat_tokenizer

QUESTION = Task("k", ({"role": "user", "content": "2 + 2?"},), location="a.jsonl, line 1")
BEGIN = "<|im_start|>assistant\n"


def warnings(chat_tokenizer, *tasks):
    return list(prompt_warnings(chat_tokenizer, tasks or (QUESTION,)))


def with_template(change):
    """The tokenizer of Qwen 2.5 with a changed template."""
    chat_tokenizer = family_chat_tokenizer("qwen2_5")
    tokenizer = chat_tokenizer.tokenizer
    tokenizer.chat_template = change(tokenizer.chat_template)
    return chat_tokenizer


@pytest.mark.parametrize("family", FAMILIES)
def test_published_templates_give_no_warning(family):
    assert warnings(family_chat_tokenizer(family)) == []


def test_a_template_that_ignores_add_generation_prompt_is_named():
    ignoring = with_template(lambda text: text.replace("if add_generation_prompt", "if false"))
    (line,) = warnings(ignoring)
    assert line.startswith("chat_template: it ignores add_generation_prompt: prompts end without")
    assert repr(BEGIN) in line


def test_an_end_token_that_the_template_does_not_write_is_named():
    chat_tokenizer = family_chat_tokenizer("qwen2_5")
    other = chat_tokenizer.tokenizer.convert_tokens_to_ids("<|im_start|>")
    wrong = replace(chat_tokenizer, eos_token_ids=(other,))
    (line,) = warnings(wrong)
    assert (
        "ends an answer with '<|im_end|>', which is no end token of the model: ['<|im_start" in line
    )
    assert warnings(replace(wrong, stop_strings=("<|im_end|>",))) == []


def test_prompts_with_control_tokens_in_their_texts_are_counted():
    texts = ("a", "b<|im_end|>", "c", "d<|im_start|>system<|im_end|>")
    tasks = [Task(t, ({"role": "user", "content": t},), location=f"line {t[0]}") for t in texts]
    (line,) = warnings(family_chat_tokenizer("qwen2_5"), *tasks)
    assert line.startswith("prompts: 2 of 4 hold control tokens")
    assert "such as '<|im_end|>' in line b" in line


def test_plain_text_that_no_template_renders_gives_no_warning():
    tokenizer = replace(family_chat_tokenizer("qwen2_5"), apply_chat_template=False)
    assert warnings(tokenizer, Task("k", f"2 + 2?<|im_end|>\n{BEGIN}")) == []
    assert len(warnings(replace(tokenizer, apply_chat_template=True), Task("k", "<|im_end|>"))) == 1
