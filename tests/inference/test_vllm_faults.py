"""After any fault of a server every request is answered once, or the call raises one error."""

import logging
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from grupo.inference.engine_errors import EngineError
from grupo.inference.vllm import Vllm
from grupo.inference.vllm_engine import THREAD, VllmEngine
from tests.helpers.fake_vllm import FakeServer, Handler, respond_correctly
from tests.helpers.fast_cases import fast_cases
from tests.helpers.faulty_vllm import TRANSIENT_FAULTS, die, fail
from tests.helpers.paths import ROOT
from tests.helpers.vllm_fixtures import (
    NEW_WEIGHTS,
    REQUESTS,
    STOP_CONDITIONS,
    WEIGHTS,
    assert_all_answered_once,
    engine_of,
    fault_at,
    timeout_for,
)


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    """A server that responds correctly until a test changes it."""
    server = FakeServer()
    yield server
    server.stop()


@pytest.mark.parametrize("fault", fast_cases(6, TRANSIENT_FAULTS))
@pytest.mark.parametrize("number", fast_cases([17], [0, 17, 39]))
def test_after_one_fault_only_missing_requests_are_sent_again(fake, fault, number, caplog):
    behaviour, message = TRANSIENT_FAULTS[fault]
    engine = engine_of(fake, request_timeout=timeout_for(fault))
    fake.handle_completion = fault_at(number, behaviour)
    with caplog.at_level(logging.WARNING):
        assert_all_answered_once(engine)
    assert (
        len(caplog.records) == 1 or fault == "responds twice"
    )  # the second response may not be read
    for record in caplog.records:
        line = record.getMessage()
        pattern = rf"vllm at {fake.url} .*{message}.*; \d+ of 40 requests are unanswered\."
        assert re.match(pattern, line)
        assert "\n" not in line
        missing = int(re.findall(r"(\d+) of 40", line)[0])
        # all replies are kept but those of the 8 requests in flight
        assert 1 <= missing <= 40 - (number - 8)
        assert len(fake.completion_bodies) <= 40 + 8


def test_restarted_server_gets_the_weights_before_any_request(fake):
    engine = engine_of(fake)
    fake.handle_completion = fault_at(17, die)
    assert_all_answered_once(engine)
    assert fake.loaded_versions == [engine.weights_version] * 2
    assert {body["cache_salt"] for body in fake.completion_bodies} == {engine.weights_version}


def test_server_restarted_between_calls_gets_the_weights_again(fake):
    engine = engine_of(fake)
    fake.stop()
    fake.start(fake.port)
    assert_all_answered_once(engine)
    assert fake.loaded_versions == [engine.weights_version] * 2


@pytest.mark.parametrize("fault", fast_cases(1, TRANSIENT_FAULTS))
def test_permanent_fault_raises_after_max_failures(fake, fault):
    behaviour, message = TRANSIENT_FAULTS[fault]
    engine = engine_of(fake, max_failures=2, max_concurrency=1, request_timeout=timeout_for(fault))
    fake.handle_completion = lambda handler, number, body: behaviour(handler, number, body)
    if fault == "responds twice":
        assert len(list(engine(REQUESTS[:9]))) == 9  # the first response to each request is valid
    else:
        with pytest.raises(EngineError, match=message) as error:
            list(engine(REQUESTS))
        assert str(error.value).endswith("Gave up after 2 failures in a row.")
        assert "; 40 of 40 requests are unanswered." in str(error.value)
        assert len(fake.completion_bodies) == 2


def test_failed_call_leaves_no_waiting_threads(fake):
    engine = engine_of(fake, max_failures=1, request_timeout=0.5)
    released = threading.Event()
    fake.handle_completion = lambda handler, number, body: released.wait(30)
    with pytest.raises(EngineError, match=r"sent no response for 0\.5 s"):
        list(engine(REQUESTS))
    deadline = time.monotonic() + 5
    while (left := waiting_threads()) and time.monotonic() < deadline:
        time.sleep(0.05)
    released.set()
    assert left == 0


def waiting_threads() -> int:
    """Number of threads that wait for the server's responses."""
    return sum(thread.name == THREAD for thread in threading.enumerate())


@pytest.mark.slow
def test_failures_count_only_without_replies_between_them(fake):
    engine = engine_of(fake, max_failures=2, max_concurrency=1)
    fake.handle_completion = lambda handler, number, body: (
        fail if number % 5 == 4 else respond_correctly
    )(handler, number, body)
    assert_all_answered_once(engine)
    assert len(fake.completion_bodies) == 40 + 40 // 4 - 1


def test_rejected_request_is_not_sent_again(fake):
    engine = engine_of(fake)
    content = {"error": {"message": "This model's maximum context length is 8 tokens."}}
    fake.handle_completion = lambda handler, number, body: handler.respond(400, content)
    with pytest.raises(EngineError, match="rejects /v1/completions: 400: This model's maximum"):
        list(engine(REQUESTS[:1]))
    assert len(fake.completion_bodies) == 1


@pytest.mark.slow
def test_unreachable_server_raises_one_error(fake):
    engine = engine_of(fake, max_failures=2, request_timeout=0.5)
    fake.stop()
    time.sleep(0.1)
    began = time.monotonic()
    with pytest.raises(EngineError, match=r"did not answer /health for 0.5 s; 40 of 40 requests"):
        list(engine(REQUESTS))
    assert time.monotonic() - began < 5


def test_load_waits_for_a_restarted_server(fake):
    engine = engine_of(fake)
    fake.stop()
    threading.Timer(0.5, fake.start, (fake.port,)).start()
    engine.load(NEW_WEIGHTS)
    assert_all_answered_once(engine)


def test_requests_are_sent_while_the_caller_processes_a_reply(fake):
    replies = engine_of(fake, max_concurrency=4)(REQUESTS)
    next(replies)
    deadline = time.monotonic() + 5
    while len(fake.completion_bodies) < 40 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(fake.completion_bodies) == 40
    assert len(list(replies)) == 39


def test_max_concurrency_requests_are_in_flight(fake):
    engine = engine_of(fake, max_concurrency=120, max_failures=1)
    barrier = threading.Barrier(120)

    def respond_when_all_have_arrived(handler: Handler, number: int, body: dict[str, Any]) -> None:
        barrier.wait(30)
        respond_correctly(handler, number, body)

    fake.handle_completion = respond_when_all_have_arrived
    assert len(list(engine(REQUESTS * 3))) == 120


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_errors_of_the_caller_are_not_retried(fake, error, caplog):
    replies = engine_of(fake, max_concurrency=4)(REQUESTS)
    next(replies)
    with pytest.raises(error):
        replies.throw(error)
    assert list(replies) == []
    assert caplog.records == []


@pytest.mark.slow
def test_process_ends_while_a_generator_is_suspended(fake):
    fake.handle_completion = lambda handler, number, body: (
        respond_correctly(handler, number, body) if number == 0 else time.sleep(30)
    )
    lines = [
        "import sys",
        f"sys.path.insert(0, {str(ROOT)!r})",
        "from types import SimpleNamespace",
        "from tests.helpers.vllm_fixtures import REQUESTS, engine_of",
        f"fake = SimpleNamespace(url={fake.url!r})",
        "replies = engine_of(fake, max_concurrency=4)(REQUESTS)",
        "next(replies)",
        "print('suspended')",
    ]
    command = [sys.executable, "-c", "\n".join(lines)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert process.stdout == "suspended\n"
    assert process.stderr == ""


def test_closed_generator_stops_sending_requests(fake):
    engine = engine_of(fake, max_concurrency=4)
    replies = engine(REQUESTS)
    next(replies)
    replies.close()
    time.sleep(0.1)
    sent = len(fake.completion_bodies)
    assert sent < 40
    assert_all_answered_once(engine)
    assert len(fake.completion_bodies) == sent + 40


def test_calls_of_workers_that_a_dead_engine_leaves_unanswered_do_not_delay_the_others(monkeypatch):
    monkeypatch.setattr("grupo.inference.vllm_processes.WATCH_INTERVAL", 0.05)
    good, bad = FakeServer(), FakeServer()
    spec = Vllm((good.url, bad.url), request_timeout=60.0, startup_timeout=60.0)
    engine = VllmEngine(spec, "", STOP_CONDITIONS)
    engine.load(WEIGHTS)
    released = threading.Event()

    def hang(method: str, args: list[Any]) -> dict[str, str]:
        bad.is_healthy = False
        return {"error": str(released.wait(60))}

    bad.rpc = hang
    start = time.monotonic()
    assert_all_answered_once(engine)
    assert time.monotonic() - start < 20
    assert bad.completion_bodies == []
    released.set()
    engine.close()
    good.stop()
    bad.stop()
