"""Faults of a server: a behaviour of the fake server and the expected log message."""

import threading
import time
from collections.abc import Callable
from typing import Any

from tests.helpers.fake_vllm import Handler, completion, respond_correctly
from tests.helpers.vllm_fixtures import Behaviour


def die(handler: Handler, number: int, body: dict[str, Any]) -> None:
    """Stops the server; it is restarted soon afterwards."""
    fake = handler.fake
    fake.stop()
    threading.Timer(0.1, fake.start, (fake.port,)).start()


def hang(handler: Handler, number: int, body: dict[str, Any]) -> None:
    time.sleep(1.5)


def fail(handler: Handler, number: int, body: dict[str, Any]) -> None:
    handler.respond(500, {"error": {"message": "EngineCore encountered an issue.\nSee above."}})


def respond_twice(handler: Handler, number: int, body: dict[str, Any]) -> None:
    respond_correctly(handler, number, body)
    respond_correctly(handler, number, body)


def truncate_response(handler: Handler, number: int, body: dict[str, Any]) -> None:
    handler.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{"id": "cmpl-')
    handler.close_connection = True


def respond_without_http(handler: Handler, number: int, body: dict[str, Any]) -> None:
    handler.wfile.write(b"Segmentation fault\r\n\r\n")
    handler.close_connection = True


def redirect(handler: Handler, number: int, body: dict[str, Any]) -> None:
    handler.wfile.write(b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /other\r\n")
    handler.wfile.write(b"Content-Length: 0\r\n\r\n")


def respond_without_json(handler: Handler, number: int, body: dict[str, Any]) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n<p>hi")


def with_choice(change: Callable[[dict[str, Any]], None]) -> Behaviour:
    """A response with one change."""

    def behave(handler: Handler, number: int, body: dict[str, Any]) -> None:
        content = completion(body, handler.fake.version)
        change(content["choices"][0])
        handler.respond(200, content)

    return behave


def logprobs_of(choice: dict[str, Any]) -> dict[str, list[Any]]:
    return choice["logprobs"]


TRANSIENT_FAULTS: dict[str, tuple[Behaviour, str]] = {
    "dies": (die, r"broke the connection \(/v1/completions: "),
    "hangs": (hang, r"sent no response for 0.5 s"),
    "fails": (fail, r"failed \(/v1/completions: 500: EngineCore encountered an issue.\)"),
    "responds twice": (
        respond_twice,
        r"(returned an invalid completion \(it belongs to request|broke the connection)",
    ),
    "truncated response": (
        truncate_response,
        r"broke the connection \(/v1/completions: ClientPayloadError: .*received 13 of 999 bytes",
    ),
    "no HTTP": (
        respond_without_http,
        r"broke the connection \(/v1/completions: ClientResponseError: .*Bad status line",
    ),
    "no JSON": (respond_without_json, r"returned invalid JSON \(/v1/completions: b'<p>hi'\)"),
    "redirect": (redirect, r"returned no completion"),
    "empty response": (lambda h, n, b: h.respond(200, None), r"returned no completion"),
    "no choice": (lambda h, n, b: h.respond(200, {"choices": []}), r"returned no completion"),
    "no tokens": (
        with_choice(lambda c: logprobs_of(c).update(tokens=[], token_logprobs=[])),
        r"returned no completion",
    ),
    "tokens without ids": (
        with_choice(lambda c: logprobs_of(c).update(tokens=["a"], token_logprobs=[-1.0])),
        r"returned no completion",
    ),
    "one log-probability too few": (
        with_choice(lambda c: logprobs_of(c)["token_logprobs"].pop()),
        r"returned an invalid completion \(\d+ tokens have \d+ log-probabilities\)",
    ),
    "one log-probability too many": (
        with_choice(lambda c: logprobs_of(c)["token_logprobs"].append(-1.0)),
        r"returned an invalid completion \(\d+ tokens have \d+ log-probabilities\)",
    ),
    "log-probability of minus infinity": (
        with_choice(lambda c: logprobs_of(c)["token_logprobs"].__setitem__(0, -9999.0)),
        r"returned an invalid completion \(a log-probability is out of range\)",
    ),
    "probability of 2": (
        with_choice(lambda c: logprobs_of(c)["token_logprobs"].__setitem__(0, 0.69)),
        r"returned an invalid completion \(a log-probability is out of range\)",
    ),
    "log-probability of nan": (
        with_choice(lambda c: logprobs_of(c)["token_logprobs"].__setitem__(0, float("nan"))),
        r"returned an invalid completion \(a log-probability is out of range\)",
    ),
    "too many tokens": (
        with_choice(
            lambda c: logprobs_of(c).update(tokens=["token_id:9"] * 13, token_logprobs=[-1.0] * 13)
        ),
        r"returned an invalid completion \(13 tokens, more than the limit of 12",
    ),
    "tokens after a stop token": (
        with_choice(
            lambda c: logprobs_of(c).update(
                tokens=["token_id:1", "token_id:2"], token_logprobs=[-1.0] * 2
            )
        ),
        r"returned an invalid completion \(tokens follow a stop token",
    ),
    "aborted": (
        with_choice(
            lambda c: (
                c.update(finish_reason="abort"),
                logprobs_of(c).update(tokens=["token_id:9"], token_logprobs=[-1.0]),
            )
        ),
        r"returned an invalid completion \(it ended with 'abort' after 1 of 12 tokens",
    ),
    "ended too early": (
        with_choice(
            lambda c: (
                c.update(finish_reason="length"),
                logprobs_of(c).update(tokens=["token_id:9"], token_logprobs=[-1.0]),
            )
        ),
        r"returned an invalid completion \(it ended with 'length' after 1 of 12 tokens",
    ),
}
