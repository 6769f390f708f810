"""Requests of the real client library to a server that fails in every way."""

import asyncio
import base64
import gzip
import json
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from grupo.core.serialization import to_data
from grupo.core.usage import count_external_usage
from grupo.rewards import ChatEndpoint
from grupo.rewards.judges import ChatReply, JudgeError, session
from grupo.util import reply_limit
from grupo.util.errors import ConfigError
from grupo.util.limits import Limit
from tests.helpers.fake_judge import closes, completion, fails, hangs, returns, says

QUESTION = ({"role": "user", "content": "Good?"},)


def complete(endpoint, *conversations):
    """The replies, and the counts of what they took."""
    with count_external_usage() as usage:
        replies = asyncio.run(endpoint.complete(conversations or (QUESTION,)))
    return replies, usage


def test_a_reply_has_its_text_and_token_counts(fake):
    fake.script = [says("very good")]
    replies, usage = complete(fake.endpoint())
    assert replies == [ChatReply("very good", "stop", 10, 2)]
    assert usage == {
        "judge_calls": 1.0,
        "judge_retries": 0.0,
        "judge_prompt_tokens": 10.0,
        "judge_completion_tokens": 2.0,
    }


def test_a_request_has_the_messages_and_the_sampling_parameters(fake):
    complete(fake.endpoint(max_tokens=7, seed=3, options=(("reasoning_effort", "low"),)))
    assert fake.paths == ["/v1/chat/completions"]
    assert fake.bodies == [
        {
            "model": "judge",
            "messages": [{"role": "user", "content": "Good?"}],
            "temperature": 0.0,
            "max_tokens": 7,
            "seed": 3,
            "reasoning_effort": "low",
        }
    ]


def test_parameters_that_are_left_to_the_server_are_not_sent(fake):
    complete(fake.endpoint(temperature=None, max_tokens=None))
    assert set(fake.bodies[0]) == {"model", "messages"}


@pytest.mark.parametrize(
    "failure",
    [
        fails(429, retry_after="0"),
        fails(408),
        fails(409),
        fails(500),
        fails(503),
        closes,
        returns("{"),
        returns("[]"),
        returns({"choices": []}),
        returns({"choices": [{"message": {"content": ["a list"]}}]}),
        returns({**completion("good"), "usage": {"prompt_tokens": "many"}}),
        returns({**completion("good"), "usage": {"prompt_tokens": 10**400}}),
        returns({**completion("good"), "usage": {"completion_tokens": -1}}),
        returns({**completion("good"), "usage": {"prompt_tokens": "1_0"}}),
    ],
    ids=[
        *("429", "408", "409", "500", "503", "closed", "broken JSON", "a list", "no choices"),
        *("content that is no text", "counts that are no numbers"),
        *("a count beyond all numbers", "a count below 0", "a count in a text"),
    ],
)
def test_a_passing_failure_is_retried_until_the_reply(fake, failure):
    fake.script = [failure, failure, says("good")]
    replies, usage = complete(fake.endpoint())
    assert replies == [ChatReply("good", "stop", 10, 1)]
    assert (len(fake.bodies), usage["judge_retries"], usage["judge_calls"]) == (3, 2, 1)


def test_an_attempt_that_exceeds_the_time_limit_is_retried(fake):
    fake.script = [hangs, says("good")]
    replies, _ = complete(fake.endpoint(time_limit=0.3))
    assert replies == [ChatReply("good", "stop", 10, 1)]


def test_a_failure_that_lasts_is_an_error_with_its_cause_after_all_attempts(fake):
    fake.script = [fails(503, "the model is loading")]
    (error,), usage = complete(fake.endpoint(retries=3))
    assert isinstance(error, JudgeError)
    assert str(error) == (
        f"the judge 'judge' at {fake.url}: status 503: the model is loading, after 4 attempts"
    )
    assert len(fake.bodies) == 4
    assert usage == {"judge_retries": 3.0, "judge_failed": 1.0}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 301])
def test_a_rejected_request_is_not_repeated(fake, status):
    fake.script = [fails(status, "no")]
    (error,), usage = complete(fake.endpoint())
    assert isinstance(error, JudgeError)
    assert f"status {status}" in str(error)
    assert len(fake.bodies) == 1
    assert usage["judge_failed"] == 1


def test_a_server_that_requests_a_longer_delay_than_allowed_fails_the_call(fake):
    fake.script = [fails(429, "quota", retry_after="3600")]
    (error,), _ = complete(fake.endpoint(max_retry_delay=5.0))
    assert "429" in str(error)
    assert len(fake.bodies) == 1


def test_a_server_that_is_not_there_is_an_error(fake):
    url = fake.url
    fake.stop()
    (error,), _ = complete(fake.endpoint(retries=1))
    assert f"at {url}: the connection failed" in str(error)
    assert "after 2 attempts" in str(error)


def test_one_failure_leaves_the_other_replies(fake):
    bad = ({"role": "user", "content": "Bad?"},)
    fake.script = [
        lambda handler, body: (
            fails(400) if body["messages"][0]["content"] == "Bad?" else says("good")
        )(handler, body)
    ]
    replies, _ = complete(fake.endpoint(), QUESTION, bad, QUESTION)
    assert [type(reply) for reply in replies] == [ChatReply, JudgeError, ChatReply]


def test_the_stated_number_of_requests_runs_at_the_same_time_over_all_event_loops(fake):
    barrier = Barrier(3)

    def wait_for_two_others(handler, body):
        barrier.wait(20)
        says("good")(handler, body)

    fake.script = [wait_for_two_others]
    endpoint = fake.endpoint(max_concurrency=3)
    conversations = [({"role": "user", "content": str(i)},) for i in range(12)]
    halves = [conversations[:6], conversations[6:]]
    with ThreadPoolExecutor(2) as pool:
        replies = [
            r for part, _ in pool.map(lambda c: complete(endpoint, *c), halves) for r in part
        ]
    assert replies == [ChatReply("good", "stop", 10, 1)] * 12
    assert fake.max_running == 3


def test_the_key_comes_from_the_environment_and_is_written_nowhere(fake, monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", "sk-secret")
    fake.script = [fails(401, "Incorrect key sk-secret")]
    endpoint = fake.endpoint(api_key_env="JUDGE_KEY")
    (error,), _ = complete(endpoint)
    assert fake.headers[0]["authorization"] == "Bearer sk-secret"
    assert "Incorrect key [API key]" in str(error)
    assert "sk-secret" not in json.dumps(to_data(endpoint)) + repr(endpoint)


KEY = "sk-4fT9qLz81xVbWm0R"


@pytest.mark.parametrize(
    "shown",
    [KEY, KEY[:9] + "\n" + KEY[9:], KEY.encode().hex(), base64.b64encode(KEY.encode()).decode()],
)
def test_a_reply_that_holds_the_key_is_filtered(fake, monkeypatch, shown):
    monkeypatch.setenv("JUDGE_KEY", KEY)
    fake.script = [says(f"Score: 4 {shown}")]
    (reply,), _ = complete(fake.endpoint(api_key_env="JUDGE_KEY"))
    assert re.fullmatch(r"Score: 4 \[API key\](.==)?", reply.text)


def test_a_reply_that_takes_long_to_filter_delays_no_other(fake, monkeypatch):
    begun, other_is_done = Event(), Event()
    in_time = []

    def answer(handler, body):
        text = body["messages"][-1]["content"]
        if text == "short":
            begun.wait(20)
        says(text)(handler, body)

    def filtered(text, secret, mark):
        if text == "long":
            begun.set()
            in_time.append(other_is_done.wait(2))
        else:
            other_is_done.set()
        return text

    monkeypatch.setenv("JUDGE_KEY", KEY)
    monkeypatch.setattr(session, "without_secret", filtered)
    fake.script = [answer]
    conversations = [({"role": "user", "content": text},) for text in ("long", "short")]
    replies, _ = complete(fake.endpoint(api_key_env="JUDGE_KEY"), *conversations)
    assert [reply.text for reply in replies] == ["long", "short"]
    assert in_time == [True]


def test_words_of_a_reply_that_equal_a_short_key_stay(fake, monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", "none")
    fake.script = [says("none of them")]
    (reply,), _ = complete(fake.endpoint(api_key_env="JUDGE_KEY"))
    assert reply.text == "none of them"


def test_a_redirect_is_not_followed_with_the_key(fake, monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", KEY)
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.settimeout(0.5)
        address = f"http://127.0.0.1:{other.getsockname()[1]}/v1/chat/completions"
        fake.script = [fails(307, location=address)]
        (error,), _ = complete(fake.endpoint(api_key_env="JUDGE_KEY", retries=0))
        with pytest.raises(TimeoutError):
            other.accept()
    assert isinstance(error, JudgeError)


def test_an_endpoint_without_keys_never_receives_that_of_the_environment(fake, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    complete(fake.endpoint())
    assert "sk-secret" not in str(fake.headers)


def test_a_missing_key_is_refused_before_any_request(monkeypatch):
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    with pytest.raises(ConfigError, match=r"'JUDGE_KEY' is not set\. Set it to the key of"):
        ChatEndpoint("judge", api_key_env="JUDGE_KEY", cache="").check()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"base_url": "127.0.0.1:8000"}, "base_url: '127.0.0.1:8000'. Allowed: http"),
        ({"base_url": "http://me:password@host/v1"}, "without a password"),
        ({"base_url": "http://host:0/v1"}, "base_url"),
        ({"temperature": -1.0}, "temperature: -1.0. Allowed: 0 or more"),
        ({"options": (("messages", "x"),)}, "options"),
        ({"options": (("top_k", 1), ("top_k", 2))}, "options"),
        ({"retries": -1}, "retries"),
        ({"time_limit": float("inf")}, "time_limit"),
    ],
)
def test_settings_that_cannot_work_are_refused(fields, message):
    with pytest.raises(ConfigError) as error:
        ChatEndpoint("judge", **fields)
    assert message in str(error.value)


def test_tokens_have_a_cost_if_prices_are_stated(fake):
    fake.script = [says("very good")]
    _, usage = complete(fake.endpoint(prompt_price=2.0, completion_price=50.0))
    assert usage["judge_cost"] == pytest.approx((10 * 2.0 + 2 * 50.0) / 1e6)


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_a_reply_beyond_the_limit_is_an_error(fake, monkeypatch, kind):
    monkeypatch.setattr(reply_limit, "REPLY_SIZE", Limit("a reply", 10_000, "bytes", ""))
    large = completion("x" * 10_000)
    fake.script = [
        lambda handler, body: handler.respond(200, large, {"Content-Type": kind}),
        says("good"),
    ]
    (reply,), _ = complete(fake.endpoint(retries=0))
    assert isinstance(reply, JudgeError)
    assert "the reply is too large: at most 10,000 bytes" in str(reply)
    (reply,), _ = complete(fake.endpoint(retries=0))
    assert reply.text == "good"


def test_a_compressed_reply_is_refused_before_it_is_expanded(fake):
    bomb = gzip.compress(bytes(1_000_000))
    encoding = {"Content-Encoding": "gzip"}
    fake.script = [lambda handler, body: handler.respond(200, bomb, encoding)]
    (reply,), _ = complete(fake.endpoint(retries=0))
    assert "the reply is compressed: 'gzip'" in str(reply)
    assert fake.headers[0]["accept-encoding"] == "identity"
