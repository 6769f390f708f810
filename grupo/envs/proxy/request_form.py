"""The forms of the API: how a request is read, and how its answer is written."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from grupo.envs.proxy.chat_answer import ChatAnswer, completion, events
from grupo.envs.proxy.chat_request import ChatRequest, parse_request
from grupo.envs.proxy.responses_answer import response_body, response_events
from grupo.envs.proxy.responses_request import parse_responses_request


@dataclass(frozen=True)
class RequestForm:
    """A form of requests and answers.

    Args:
        parse: Reads the body of a request; raises `ApiError`.
        body: Writes an answer whole.
        events: Writes an answer as server-sent events.
    """

    parse: Callable[[Any], ChatRequest]
    body: Callable[[ChatRequest, ChatAnswer], Mapping[str, Any]]
    events: Callable[[ChatRequest, ChatAnswer], Iterator[str]]


# by the path below that of the API
FORMS = {
    "chat/completions": RequestForm(parse_request, completion, events),
    "responses": RequestForm(parse_responses_request, response_body, response_events),
}
