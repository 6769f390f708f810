"""Agents that call a policy with the client of OpenAI, unmodified."""

import time
from contextlib import suppress

import openai

ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "The sum.",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
    },
}


def client_of(address, **options):
    return openai.OpenAI(base_url=address.base_url, api_key=address.api_key, **options)


def create(address, **options):
    """The chat completion of a client that is closed afterwards."""
    with client_of(address) as client:
        return client.chat.completions.create(model=address.model, **options)


def user(text):
    return {"role": "user", "content": text}


def ask(address, messages, **options):
    """The first choice of a chat completion."""
    return create(address, messages=messages, **options).choices[0]


def ask_once(task, address):
    """One call; the reward is the number in the answer."""
    return float(ask(address, [user(task.prompt)]).message.content)


def converse(task, address):
    """Calls until the answer is "stop", each with the answers before it."""
    messages = [user(task.prompt)]
    while (text := ask(address, messages).message.content) != "stop":
        messages += [{"role": "assistant", "content": text}, user(f"You wrote {text}.")]


def with_sub_agent(task, address):
    """A conversation, a second one in the middle of it, and the first one again."""
    messages = [user("main")]
    first = ask(address, messages).message.content
    second = ask(address, [user("sub")]).message.content
    messages += [{"role": "assistant", "content": first}, user(second)]
    ask(address, messages)


def loop_for_ever(task, address):
    while True:
        ask(address, [user("again")])


def raise_after_call(task, address):
    ask(address, [user("one")])
    raise ValueError("the agent has a bug")


def hang_after_call(task, address):
    ask(address, [user("one")])
    time.sleep(4)


def give_up(task, address):
    """A call that is given up before its answer, and a second one."""
    with client_of(address, timeout=0.2, max_retries=0) as client, suppress(openai.APITimeoutError):
        client.chat.completions.create(model="policy", messages=[user("one")])
    ask(address, [user("two")])


def call_nothing(task, address):
    return 1.0


async def converse_async(task, address):
    async with openai.AsyncOpenAI(base_url=address.base_url, api_key=address.api_key) as client:
        answer = await client.chat.completions.create(model="policy", messages=[user("async")])
    return float(answer.choices[0].message.content)
