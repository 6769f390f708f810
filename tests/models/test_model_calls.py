"""Calls of agents in tokens: conversations, tools, and messages that no template renders."""

import asyncio

import pytest

from grupo.core.model_call import UNREADABLE, ModelCall
from grupo.core.types import Response, Rollout
from grupo.models.model_calls import answer_call
from tests.helpers.chat_templates import make_chat_tokenizer


def user(text):
    return {"role": "user", "content": text}


def answer(tokenizer, rollout, call, text="ok"):
    """The rollout with a response of this text to the call, and the context that it was given."""
    contexts = []

    async def generate(context, observation):
        contexts.append((*context, *observation))
        items = tokenizer.encode_forced(text)
        return Response(items, (0.0,) * len(items), observation, text)

    response = asyncio.run(answer_call(tokenizer, rollout, call, generate))
    return rollout.append_turn(call, response), contexts


def text_of(tokenizer, tokens):
    return tokenizer.tokenizer.decode(tokens)


def test_the_context_of_a_conversation_is_taken_up_after_another_one():
    tokenizer = make_chat_tokenizer("chatml")
    rollout, _ = answer(tokenizer, Rollout(), ModelCall([user("main")]), "one")
    rollout, _ = answer(tokenizer, rollout, ModelCall([user("sub")]), "two")
    assert len(rollout.contexts) == 2
    call = ModelCall([user("on")], continues=(0,))
    rollout, (context,) = answer(tokenizer, rollout, call, "three")
    main = rollout.turns[0][1]
    start = (*main.observation, *main.items)
    assert context[: len(start)] == start
    rest = text_of(tokenizer, context[len(start) :])
    assert rest == "<|im_end|>\n<|im_start|>user\non<|im_end|>\n<|im_start|>assistant\n"
    assert len(rollout.contexts) == 3
    rollout, (context,) = answer(tokenizer, rollout, ModelCall([user("end")], continues=(0, 2)))
    assert len(rollout.contexts) == 3  # the conversation of the last context goes on
    third = rollout.turns[2][1]
    start = (*third.observation, *third.items)
    assert context[: len(start)] == start
    assert "sub" not in text_of(tokenizer, context)


def test_messages_that_the_template_rejects_have_no_answer_but_the_cause():
    tokenizer = make_chat_tokenizer("gemma")
    rollout, contexts = answer(tokenizer, Rollout(), ModelCall([user("a"), user("b")]))
    response = rollout.turns[0][1]
    assert (contexts, response.items, response.finish_reason) == ([], (), UNREADABLE)
    assert "roles must alternate" in response.text


@pytest.mark.parametrize("kind", [list, tuple])
def test_a_call_is_its_messages(kind):
    assert ModelCall(kind([user("a")]), session="x") == (user("a"),)
