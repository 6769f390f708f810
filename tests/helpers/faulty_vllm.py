"""What servers may do wrong, each a behaviour of the fake one and the line it is to end in."""

import threading
import time
from collections.abc import Callable
from typing import Any

from tests.helpers.fake_vllm import Handler, says, well
from tests.helpers.vllm_fixtures import Behaviour


def dies(handler: Handler, number: int, body: dict[str, Any]) -> None:
    """The server is gone, and somebody starts it anew."""
    fake = handler.fake
    fake.die()
    threading.Timer(0.1, fake.rise, (fake.port,)).start()


def hangs(handler: Handler, number: int, body: dict[str, Any]) -> None:
    time.sleep(1.5)


def fails(handler: Handler, number: int, body: dict[str, Any]) -> None:
    handler.say(500, {"error": {"message": "EngineCore encountered an issue.\nSee above."}})


def answers_twice(handler: Handler, number: int, body: dict[str, Any]) -> None:
    well(handler, number, body)
    well(handler, number, body)


def breaks_off(handler: Handler, number: int, body: dict[str, Any]) -> None:
    handler.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{"id": "cmpl-')
    handler.close_connection = True


def no_http(handler: Handler, number: int, body: dict[str, Any]) -> None:
    handler.wfile.write(b"Segmentation fault\r\n\r\n")
    handler.close_connection = True


def no_json(handler: Handler, number: int, body: dict[str, Any]) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n<p>hi")


def with_choice(change: Callable[[dict[str, Any]], None]) -> Behaviour:
    """An answer that is wrong in one thing."""

    def behave(handler: Handler, number: int, body: dict[str, Any]) -> None:
        said = says(body, handler.fake.version)
        change(said["choices"][0])
        handler.say(200, said)

    return behave


def said_of(choice: dict[str, Any]) -> dict[str, list[Any]]:
    return choice["logprobs"]


PASSING: dict[str, tuple[Behaviour, str]] = {
    "dies": (dies, r"broke off \(/v1/completions: "),
    "hangs": (hangs, r"has not answered for 0.5 s"),
    "fails": (fails, r"failed \(/v1/completions: 500: EngineCore encountered an issue.\)"),
    "answers twice": (answers_twice, r"(says what cannot be \(it answers request|broke off)"),
    "breaks off": (breaks_off, r"broke off \(/v1/completions: IncompleteRead"),
    "speaks no HTTP": (no_http, r"broke off \(/v1/completions: BadStatusLine"),
    "speaks no JSON": (no_json, r"speaks no JSON \(/v1/completions: b'<p>hi'\)"),
    "says nothing": (lambda h, n, b: h.say(200, None), r"says what is no answer"),
    "says no choice": (lambda h, n, b: h.say(200, {"choices": []}), r"says what is no answer"),
    "no tokens": (
        with_choice(lambda c: said_of(c).update(tokens=[], token_logprobs=[])),
        r"says what is no answer",
    ),
    "no ids": (
        with_choice(lambda c: said_of(c).update(tokens=["a"], token_logprobs=[-1.0])),
        r"says what is no answer",
    ),
    "a log-probability too few": (
        with_choice(lambda c: said_of(c)["token_logprobs"].pop()),
        r"says what cannot be \(\d+ tokens have \d+ log-probabilities\)",
    ),
    "a log-probability too many": (
        with_choice(lambda c: said_of(c)["token_logprobs"].append(-1.0)),
        r"says what cannot be \(\d+ tokens have \d+ log-probabilities\)",
    ),
    "minus infinity": (
        with_choice(lambda c: said_of(c)["token_logprobs"].__setitem__(0, -9999.0)),
        r"says what cannot be \(a log-probability that is none\)",
    ),
    "a probability of 2": (
        with_choice(lambda c: said_of(c)["token_logprobs"].__setitem__(0, 0.69)),
        r"says what cannot be \(a log-probability that is none\)",
    ),
    "not a number": (
        with_choice(lambda c: said_of(c)["token_logprobs"].__setitem__(0, float("nan"))),
        r"says what cannot be \(a log-probability that is none\)",
    ),
    "too many tokens": (
        with_choice(
            lambda c: said_of(c).update(tokens=["token_id:9"] * 13, token_logprobs=[-1.0] * 13)
        ),
        r"says what cannot be \(13 tokens where there is room for 12",
    ),
    "words after the end": (
        with_choice(
            lambda c: said_of(c).update(
                tokens=["token_id:1", "token_id:2"], token_logprobs=[-1.0] * 2
            )
        ),
        r"says what cannot be \(tokens after one that ends an answer",
    ),
    "aborted": (
        with_choice(
            lambda c: (
                c.update(finish_reason="abort"),
                said_of(c).update(tokens=["token_id:9"], token_logprobs=[-1.0]),
            )
        ),
        r"says what cannot be \(it ended for 'abort' after 1 of 12 tokens",
    ),
    "too early": (
        with_choice(
            lambda c: (
                c.update(finish_reason="length"),
                said_of(c).update(tokens=["token_id:9"], token_logprobs=[-1.0]),
            )
        ),
        r"says what cannot be \(it ended for 'length' after 1 of 12 tokens",
    ),
}
