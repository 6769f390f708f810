"""A policy behind the API without training, for the unmodified client of OpenAI."""

import gzip
import http.client
import json
from asyncio import CancelledError
from collections.abc import Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from urllib.parse import urlsplit

import openai
import pytest

from grupo.envs.proxy import server
from grupo.envs.proxy.served_policy import serve_policy
from grupo.models.causal_lm import CausalLM
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine
from tests.helpers.agents import user
from tests.helpers.env_runs import make_model
from tests.helpers.resource_use import limited_peak


@pytest.fixture(scope="module")
def variables(tmp_path_factory) -> Iterator[dict[str, str]]:
    model = make_model(tmp_path_factory.mktemp("model"), context=48)
    policy = CausalLM(model, max_new_tokens=12, device="cpu").build()
    announced, stop = SimpleQueue(), Future()

    def serve():
        with pytest.raises(CancelledError):
            run_coroutine(serve_policy(policy.actor(0), 0, announced.put), stop)

    thread = Thread(target=serve)
    thread.start()
    yield announced.get(timeout=60)
    stop.set_result(None)
    thread.join(60)


@pytest.fixture
def client(variables):
    url, key = variables["OPENAI_BASE_URL"], variables["OPENAI_API_KEY"]
    with openai.OpenAI(base_url=url, api_key=key, max_retries=0) as client:
        yield client


def complete(client, text="hello", **options):
    return client.chat.completions.create(model="policy", messages=[user(text)], **options)


def test_an_answer_has_a_text_and_its_numbers_of_tokens(client):
    answer = complete(client, logprobs=True, max_tokens=5)
    assert answer.usage.prompt_tokens == len("u:hello\n>")
    assert 1 <= answer.usage.completion_tokens == len(answer.choices[0].logprobs.content) <= 5
    assert [model.id for model in client.models.list()] == ["policy"]


def test_temperature_0_is_greedy_and_each_request_has_its_own_random_numbers(client):
    greedy = {complete(client, temperature=0).choices[0].message.content for _ in range(3)}
    sampled = {complete(client).choices[0].message.content for _ in range(3)}
    assert (len(greedy), len(sampled)) == (1, 3)


def test_a_stream_has_the_greedy_answer(client):
    whole = complete(client, temperature=0).choices[0].message.content
    events = complete(client, temperature=0, stream=True)
    assert "".join(event.choices[0].delta.content or "" for event in events) == whole


@pytest.mark.parametrize(
    ("options", "param", "message"),
    [
        ({"n": 3}, "n", "n: 3. Allowed: 1"),
        ({"temperature": -1}, "temperature", "-1. Allowed: above 0"),
        ({"temperature": 1e-40}, "temperature", "1e-40. Allowed: 1e-30 or more"),
        ({"seed": 4}, "seed", "seed: it does not apply. Allowed: leave it out."),
        ({"max_tokens": 0}, "max_tokens", "max_tokens: 0. Allowed: a whole number of 1 or more."),
        ({"tools": [{"type": "function"}]}, "tools[0]", "tools[0]: {'type': 'function'}. Allowed"),
        ({"top_logprobs": 2}, "top_logprobs", "top_logprobs: 2. Allowed: 0"),
        ({"text": "x" * 50}, "messages", "they fill the model's context"),
    ],
)
def test_a_request_that_cannot_be_served_is_refused_by_name(client, options, param, message):
    with pytest.raises(openai.BadRequestError) as refusal:
        complete(client, **options)
    assert refusal.value.param == param
    assert message in refusal.value.body["message"]


def test_the_form_of_responses_is_served_and_its_fields_are_named(client):
    response = client.responses.create(model="policy", input="hello", temperature=0)
    assert response.output_text == complete(client, temperature=0).choices[0].message.content
    for options, param in (({"input": "x" * 50}, "input"), ({"reasoning": {"effort": "low"}}, "")):
        with pytest.raises(openai.BadRequestError) as refusal:
            client.responses.create(model="policy", **{"input": "hello", **options})
        assert refusal.value.param == (param or "reasoning")
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(response.id)


def send(variables, body=b"{}", method="POST", path="/chat/completions", **headers):
    """Status and error of a request."""
    status, reply = request(variables, body, method, path, **headers)
    return status, json.loads(reply)["error"]


def request(variables, body, method="POST", path="/chat/completions", **headers):
    """Status and body of the reply to a request."""
    url = urlsplit(variables["OPENAI_BASE_URL"])
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
    key = {"Authorization": f"Bearer {variables['OPENAI_API_KEY']}"}
    connection.request(method, url.path + path, body, {**key, **headers})
    reply = connection.getresponse()
    text = reply.read()
    connection.close()
    return reply.status, text


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "The body is not JSON"),
        (b"\xff\xfe", "The body is not JSON"),
        (b"[" * 100_000, "The body is not JSON"),
        (b"[]", "The body is no object"),
        (b'{"messages": "hello"}', "messages: 'hello'. Allowed: a list"),
        (b'{"messages": [1]}', "messages[0]: 1. Allowed: an object"),
        (b'{"messages": [{"role": "usr"}]}', "'usr'. Did you mean 'user'?"),
        (b'{"messages": [{"role": "user", "content": 1}]}', "messages[0].content: 1. Allowed: a"),
        (b'{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}', "'image_url'"),
        (b'{"messages": [{"role": "user", "content": "\\ud800"}]}', "half of a surrogate pair"),
        (b'{"messages": [{"role": "assistant", "content": ""}]}', "the last one is the assistant"),
        (b'{"messages": [{"role": "user"}], "stream": "yes"}', "stream: 'yes'. Allowed: true or"),
        (b'{"messages": [' + b"0," * 100_000 + b"0]}", "too many values. Allowed: at most 100,000"),
        (b'{"messages": [{"role": "user"}], "temperature": "hot"}', "temperature: 'hot'. Allowed"),
    ],
)
def test_nonsense_gets_one_clear_message(variables, body, message):
    status, error = send(variables, body)
    assert status == 400
    assert message in error["message"]
    assert "\n" not in error["message"]


def test_requests_without_the_key_with_a_foreign_host_or_too_large_are_refused(variables):
    assert send(variables, Authorization="Bearer other")[0] == 401
    assert send(variables, Host="evil.example:80")[0] == 403
    assert send(variables, path="/embeddings")[0] == 404
    assert send(variables, method="PUT")[0] == 405
    assert send(variables, body=b" " * (16 * 2**20 + 1))[0] == 413


BODY = b'{"messages": [{"role": "user", "content": "a"}]}'


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "application/json; charset=nope"}, 200),
        ({"Content-Type": "application/json; charset=zlib_codec"}, 200),
        ({"Content-Encoding": "gzip"}, 200),
        ({"Authorization": "Bearer \xe9"}, 401),
        ({"X": "a" * 10_000}, 400),
    ],
)
def test_headers_choose_no_codec_and_write_nothing_to_the_terminal(
    variables, capfd, headers, status
):
    assert request(variables, BODY, **headers)[0] == status
    assert capfd.readouterr() == ("", "")


def test_a_compressed_body_is_not_expanded(variables, capfd):
    status, error = send(variables, gzip.compress(BODY), **{"Content-Encoding": "gzip"})
    assert (status, error["code"]) == (400, "invalid_json")
    assert capfd.readouterr() == ("", "")


def test_a_body_that_does_not_arrive_is_given_up(variables, monkeypatch):
    monkeypatch.setattr(server, "BODY_SECONDS", 0.05)
    status, error = send(variables, BODY, **{"Content-Length": "1000"})
    assert (status, error["message"]) == (408, "The body is not complete after 0.05 s.")


def a_call(arguments):
    """Messages of an agent that called a tool with these arguments."""
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return [{"role": "assistant", "tool_calls": [call]}, user("so?")]


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([user("x" * 8_000_000)], "they fill the model's context"),
        ([user("hello " * 1_000_000)], "they fill the model's context"),
        (a_call(json.dumps({"a": "x" * 8_000_000})), "they fill the model's context"),
        (a_call(f'{{"a": [{"[]," * 1_000_000}0]}}'), "have too many values. Allowed: at most"),
    ],
    ids=["letters", "words", "argument", "values"],
)
def test_a_long_request_is_refused_within_200_mb(variables, messages, reason):
    body = json.dumps({"messages": messages}).encode()
    with limited_peak(200 * 2**20):
        status, error = send(variables, body)
    assert (status, error["param"]) == (400, "messages")
    assert reason in error["message"]


@pytest.mark.parametrize("port", [-1, 70000])
def test_a_port_that_cannot_be_is_refused(port):
    with pytest.raises(ConfigError, match=f"port: {port}. Allowed: 0 to 65535"):
        run_coroutine(serve_policy(None, port, print))
