"""The form of Responses: the unmodified client of OpenAI reads it as it reads chat completions."""

import json
import time
from dataclasses import replace

import openai
import pytest

from grupo.core.types import Response, Task
from grupo.envs import RewardTerm
from grupo.envs.proxy import ProxyEnv
from grupo.envs.proxy.api_error import ApiError
from grupo.envs.proxy.chat_answer import ChatAnswer
from grupo.envs.proxy.chat_request import parse_request
from grupo.envs.proxy.responses_answer import response_body, response_events
from grupo.envs.proxy.responses_request import parse_responses_request
from tests.helpers.agents import ADD, client_of, user
from tests.helpers.scripted_play import play

TASK = Task("key", "2 + 3?", 5)
LENGTH = RewardTerm("length", lambda task, rollout: float(rollout.length))
FUNCTION = {"type": "function", **ADD["function"]}
CALL = 'I add. <tool_call>{"name": "add", "arguments": {"a": 2}}</tool_call>'


def run(harness, *texts, **fields):
    """The rollout of an agent that is given these answers."""
    (rollout,) = play(ProxyEnv(harness, (LENGTH,), **fields), texts, task=TASK)
    return rollout


def respond(address, value, **options):
    """The response to an input, of a client that is closed afterwards."""
    with client_of(address) as client:
        return client.responses.create(model=address.model, input=value, **options)


def test_a_text_gets_a_text_with_its_numbers_of_tokens():
    seen = []

    def harness(task, address):
        seen.append(respond(address, task.prompt, instructions="Be brief.", max_output_tokens=9))

    rollout = run(harness, "five")
    (response,) = seen
    assert (response.output_text, response.status, response.model) == (
        "five",
        "completed",
        "policy",
    )
    usage = response.usage
    assert (usage.output_tokens, usage.total_tokens - usage.input_tokens) == (4, 4)
    call = rollout.turns[0][0]
    assert [(m["role"], m["content"]) for m in call] == [
        ("system", "Be brief."),
        ("user", "2 + 3?"),
    ]
    assert call.max_new_tokens == 9


def test_calls_and_results_continue_the_conversation_in_exact_tokens():
    seen = []

    def harness(task, address):
        items = [user(task.prompt)]
        response = respond(address, items, tools=[FUNCTION])
        call = response.output[-1]
        seen.append((response.output_text, call.type, call.name, json.loads(call.arguments)))
        items += [item.model_dump() for item in response.output]
        items.append({"type": "function_call_output", "call_id": call.call_id, "output": "5"})
        seen.append(respond(address, items, tools=[FUNCTION]).output_text)

    rollout = run(harness, CALL, "It is 5.")
    assert seen == [("I add.", "function_call", "add", {"a": 2}), "It is 5."]
    (first, _), (second, _) = rollout.turns
    assert "tools" in first[0] or '"name": "add"' in first[0]["content"]
    assert [message["content"] for message in second] == ["5"]
    assert second.continues == (0,)
    assert rollout.reward_terms["tool_calls"] == 1.0


def test_a_conversation_may_change_its_form():
    def harness(task, address):
        text = respond(address, task.prompt).output_text
        messages = [user(task.prompt), {"role": "assistant", "content": text}, user("Why?")]
        with client_of(address) as client:
            client.chat.completions.create(model=address.model, messages=messages)

    rollout = run(harness, "5", "Because.")
    assert rollout.turns[1][0].continues == (0,)


def test_the_clients_helper_assembles_the_stream():
    seen = []

    def harness(task, address):
        with (
            client_of(address) as client,
            client.responses.stream(
                model=address.model, input=task.prompt, tools=[FUNCTION]
            ) as stream,
        ):
            events = list(stream)
            seen.append((events, stream.get_final_response()))

    run(harness, CALL)
    ((events, response),) = seen
    text, call = response.output
    assert (text.content[0].text, call.name, json.loads(call.arguments)) == (
        "I add.",
        "add",
        {"a": 2},
    )
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type.removeprefix("response.") for event in events] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]


def test_a_cut_answer_is_incomplete_whole_and_as_a_stream():
    request = parse_responses_request({"input": "go"})
    cut = Response((1, 2), (-1.0, -2.0), text="ab", finish_reason="length")
    answer = ChatAnswer("k_0", "ab", (), cut, 3)
    body = response_body(request, answer)
    assert body["incomplete_details"] == {"reason": "max_output_tokens"}
    assert body["output"][0]["status"] == body["status"] == "incomplete"
    *_, last = response_events(request, answer)
    assert last.startswith("event: response.incomplete\n")
    whole = replace(answer, response=replace(cut, finish_reason="stop"))
    assert response_body(request, whole)["status"] == "completed"


def test_log_probabilities_are_those_of_the_sampled_tokens():
    seen = []

    def harness(task, address):
        response = respond(address, "go", include=["message.output_text.logprobs"])
        seen.extend((x.token, x.logprob) for x in response.output[0].content[0].logprobs)

    run(harness, "ab")
    assert seen == [("token_id:7", -1.0)] * 2


def test_options_that_do_not_apply_are_counted():
    def harness(task, address):
        include = ["reasoning.encrypted_content"]
        options = {"temperature": 0.2, "reasoning": {"effort": "low"}, "include": include}
        respond(address, "go", text={"format": {"type": "text"}}, store=False, **options)

    terms = run(harness, "ab").reward_terms
    names = {name for name in terms if name.startswith("not_applied/")}
    assert names == {f"not_applied/{name}" for name in ("temperature", "reasoning", "include")}


def test_an_earlier_response_is_refused_by_name_and_costs_nothing():
    seen = []

    def harness(task, address):
        with pytest.raises(openai.BadRequestError) as refusal:
            respond(address, "go", previous_response_id="resp_1")
        seen.append((refusal.value.param, refusal.value.body["message"]))
        respond(address, "go")

    rollout = run(harness, "ab")
    assert rollout.reward_terms["calls"] == 1.0
    ((param, message),) = seen
    assert param == "previous_response_id"
    assert message == (
        "previous_response_id: 'resp_1'. Allowed: leave it out, and send the earlier items in"
        " input: none are kept."
    )


def test_both_forms_of_one_request_are_the_same_request():
    arguments = '{"a": 2}'
    items = [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Hi"}]},
        user("2 + 3?"),
        {"role": "assistant", "content": [{"type": "output_text", "text": "I add."}]},
        {"type": "function_call", "call_id": "call_1", "name": "add", "arguments": arguments},
        {"type": "function_call", "call_id": "call_2", "name": "add", "arguments": arguments},
        {"type": "function_call_output", "call_id": "call_1", "output": "4"},
        {
            "type": "function_call_output",
            "call_id": "call_2",
            "output": [{"type": "input_text", "text": "5"}],
        },
    ]
    calls = [
        {"id": name, "type": "function", "function": {"name": "add", "arguments": arguments}}
        for name in ("call_1", "call_2")
    ]
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "system", "content": "Hi"},
        user("2 + 3?"),
        {"role": "assistant", "content": "I add.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "call_1", "content": "4"},
        {"role": "tool", "tool_call_id": "call_2", "content": "5"},
    ]
    common = {"temperature": 0.5, "stream": True, "model": "m"}
    chat = parse_request({"messages": messages, "tools": [ADD], "max_tokens": 7, **common})
    body = {"instructions": "Be brief.", "input": items, "tools": [FUNCTION], **common}
    request = parse_responses_request({**body, "max_output_tokens": 7})
    assert replace(request, messages_field="messages") == chat


def calls_and_results(count):
    """The same calls and results in both forms: chat completions, and Responses."""
    names = [f"call_{i}" for i in range(count)]
    calls = [{"id": n, "type": "function", "function": {"name": "add"}} for n in names]
    results = [{"role": "tool", "tool_call_id": n, "content": "4"} for n in names]
    items = [{"type": "function_call", "call_id": n, "name": "add"} for n in names]
    outputs = [{"type": "function_call_output", "call_id": n, "output": "4"} for n in names]
    answer = {"role": "assistant", "content": "", "tool_calls": calls}
    return {"messages": [answer, *results]}, {"input": [*items, *outputs]}


def test_ten_thousand_calls_and_results_are_read_in_seconds():
    chat, responses = calls_and_results(10_000)
    begin = time.process_time()
    request, other = parse_request(chat), parse_responses_request(responses)
    assert time.process_time() - begin < 5.0  # each result compared with each call: over 20
    assert other.messages == request.messages
    assert [message["name"] for message in request.messages[1:]] == ["add"] * 10_000


@pytest.mark.parametrize(
    "body",
    [
        {"input": [{"type": "a" * 10_000}]},
        {"input": [{"role": "a" * 10_000}]},
        {"input": [{"role": "user", "content": [{"type": "a" * 10_000}]}]},
        {"input": "a", "tools": [{"type": "a" * 10_000}]},
        {"input": "a", "previous_response_id": "a" * 10_000},
    ],
)
def test_a_refusal_repeats_the_beginning_of_a_long_value(body):
    with pytest.raises(ApiError, match=r"a{70,80}") as refusal:
        parse_responses_request(body)
    assert len(str(refusal.value)) < 400


def test_calls_after_an_answer_belong_to_it_and_a_result_names_its_tool():
    call = {"type": "function_call", "call_id": "a", "name": "add"}
    items = [
        {"role": "assistant", "content": "So:"},
        *(call, {**call, "call_id": "b", "name": "sub"}),
        {"type": "function_call_output", "call_id": "b", "output": "1"},
        {**call, "call_id": "c"},
        {"type": "function_call_output", "call_id": "none", "output": "2"},
    ]
    answer, first, other, second = parse_responses_request({"input": items}).messages
    assert [c["function"]["name"] for c in answer["tool_calls"]] == ["add", "sub"]
    assert (answer["content"], first["name"], second["name"]) == ("So:", "sub", "unknown")
    assert (other["content"], len(other["tool_calls"])) == ("", 1)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], "The body is no object. Allowed: JSON with the field 'input'."),
        ({}, "input: None. Allowed: a text, or a list of one item or more."),
        ({"input": []}, "input: []. Allowed: a text"),
        ({"input": [1]}, "input[0]: 1. Allowed: an object"),
        ({"input": [{"type": "reasoning"}]}, "input[0].type: 'reasoning'. Allowed: function_call,"),
        ({"input": [{"type": "function_cal"}]}, "Did you mean 'function_call'?"),
        ({"input": [{"role": "usr"}]}, "input[0].role: 'usr'. Did you mean 'user'?"),
        ({"input": [{"type": "function_call"}]}, 'Allowed: {"type": "function_call", "call_id"'),
        (
            {"input": [{"type": "function_call", "name": "f", "arguments": "{"}]},
            "input[0].arguments: Expecting property name",
        ),
        ({"input": [{"role": "assistant", "content": "a"}]}, "input: the last one is the assist"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
            "input[0].content[0].type: 'input_image'. Allowed: text.",
        ),
        ({"input": "a", "instructions": 1}, "instructions: 1. Allowed: a text."),
        ({"input": "a", "tools": [{"type": "web_search"}]}, "tools[0].type: 'web_search'. Allowed"),
        ({"input": "a", "tools": [ADD]}, 'Allowed: {"type": "function", "name": "…"'),
        ({"input": "a", "max_output_tokens": 0}, "max_output_tokens: 0. Allowed: a whole number"),
        ({"input": "a", "include": "logprobs"}, "include: 'logprobs'. Allowed: a list of names"),
        ({"input": "a", "background": True}, "background: True. Allowed: false."),
        ({"input": "a", "conversation": "c"}, "conversation: 'c'. Allowed: leave it out"),
        ({"input": "a", "prompt": {"id": "p"}}, "prompt: {'id': 'p'}. Allowed: leave it out"),
        ({"input": "a", "top_logprobs": 3}, "top_logprobs: 3. Allowed: 0"),
        ({"input": "a", "stream": "yes"}, "stream: 'yes'. Allowed: true or false."),
    ],
)
def test_nonsense_gets_one_clear_message(body, message):
    with pytest.raises(ApiError) as refusal:
        parse_responses_request(body)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)
