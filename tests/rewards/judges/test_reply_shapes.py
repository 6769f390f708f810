"""Replies of a judge in another shape or codec, and what is kept of those in the right one."""

import asyncio
import re

import pytest

from grupo.rewards.judges import ChatReply
from grupo.rewards.judges.session import parse_completion
from tests.helpers.fake_judge import completion

KEY = "sk-4fT9qLz81xVbWm0R"


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (None, "no choice with a message in None"),
        ([1], "no choice with a message in [1]"),
        ({}, "no choice with a message in {}"),
        ({"choices": "abc"}, "no choice with a message in {'choices': 'abc'}"),
        ({"choices": {}}, "no choice with a message in {'choices': {}}"),
        ({"choices": [None]}, "no choice with a message in {'choices': [None]}"),
        ({"choices": [{"message": {"content": 5}}]}, "the content is 5, no text"),
    ],
)
def test_a_reply_of_another_shape_is_shown_in_the_error(reply, problem):
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        parse_completion(reply)


@pytest.mark.parametrize(
    "usage", [[1], "1", {"prompt_tokens": "1_0"}, {"prompt_tokens": True}, {"prompt_tokens": 1.5}]
)
def test_a_count_that_is_no_whole_number_is_an_error(usage):
    with pytest.raises(
        ValueError, match=r"usage: prompt_tokens is .+\. Allowed: 0 to 1099511627776"
    ):
        parse_completion({**completion("good"), "usage": usage})


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None}])
def test_counts_that_are_missing_are_0(usage):
    reply = parse_completion({**completion("good"), "usage": usage})
    assert (reply.prompt_tokens, reply.completion_tokens) == (0, 0)


@pytest.mark.parametrize("reason", [None, KEY[9:], {"a": [1] * 1000}, "content_filter"])
def test_of_the_reason_of_an_end_only_the_limit_of_tokens_is_kept(reason):
    assert parse_completion(completion(KEY[:9], reason)).finish_reason == "stop"
    assert parse_completion(completion(KEY[:9], "length")).finish_reason == "length"


@pytest.mark.parametrize("codec", ["rot13", "zlib_codec", "idna", "undefined", "punycode"])
@pytest.mark.parametrize("status", [200, 400])
def test_the_codec_that_a_server_names_is_not_used(fake, codec, status):
    headers = {"Content-Type": f"application/json; charset={codec}"}
    content = {**completion("gut, schön"), "error": {"message": "gut, schön"}}
    fake.script = [lambda handler, body: handler.respond(status, content, headers)]
    endpoint = fake.endpoint(retries=0)
    (reply,) = asyncio.run(endpoint.complete([({"role": "user", "content": "Good?"},)]))
    message = reply.text if isinstance(reply, ChatReply) else str(reply).partition(": ")[2]
    assert message == {200: "gut, schön", 400: "status 400: gut, schön"}[status]
