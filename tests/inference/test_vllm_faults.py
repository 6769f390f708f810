"""Whatever a server does, every request is answered once, or the call ends with one line."""

import logging
import re
import threading
import time
from collections.abc import Iterator

import pytest

from grupo.inference.http_client import EngineError
from tests.helpers.fake_vllm import Fake, well
from tests.helpers.faulty_vllm import PASSING, dies, fails
from tests.helpers.vllm_fixtures import (
    MANY,
    NEW,
    assert_all_answered_once,
    engine_of,
    once,
    patience_for,
)


@pytest.fixture
def fake() -> Iterator[Fake]:
    """One that does as it should until it is told otherwise."""
    server = Fake()
    yield server
    server.die()


@pytest.mark.parametrize("fault", PASSING)
@pytest.mark.parametrize("number", [0, 17, 39])
def test_a_server_that_goes_wrong_once_is_asked_again_for_what_is_missing(
    fake, fault, number, caplog
):
    wrong, line = PASSING[fault]
    engine = engine_of(fake, patience=patience_for(fault))
    fake.completes = once(number, wrong)
    with caplog.at_level(logging.WARNING):
        assert_all_answered_once(engine)
    assert len(caplog.records) == 1 or fault == "answers twice"  # it may never be heard twice
    for record in caplog.records:
        said = record.getMessage()
        assert re.match(
            rf"vllm at {fake.url} .*{line}.*; \d+ of 40 requests are unanswered\.", said
        )
        assert "\n" not in said
        missing = int(re.findall(r"(\d+) of 40", said)[0])
        assert (
            1 <= missing <= 40 - (number - 8)
        )  # but for the 8 on their way, what was said is kept
        assert len(fake.asked) <= 40 + 8


def test_after_a_death_weights_are_loaded_again_before_anything_is_asked(fake):
    engine = engine_of(fake)
    fake.completes = once(17, dies)
    assert_all_answered_once(engine)
    assert fake.loaded == [engine.weights_version] * 2
    assert {body["cache_salt"] for body in fake.asked} == {engine.weights_version}


def test_a_server_that_died_between_two_calls_is_given_the_weights_again(fake):
    engine = engine_of(fake)
    fake.die()
    fake.rise(fake.port)
    assert_all_answered_once(engine)
    assert fake.loaded == [engine.weights_version] * 2


@pytest.mark.parametrize("fault", PASSING)
def test_a_server_that_always_goes_wrong_is_given_up_on_after_so_many_tries(fake, fault):
    wrong, line = PASSING[fault]
    engine = engine_of(fake, tries=2, at_once=1, patience=patience_for(fault))
    fake.completes = lambda handler, number, body: wrong(handler, number, body)
    if fault == "answers twice":
        assert len(list(engine(MANY[:9]))) == 9  # it says one thing each time it is asked
    else:
        with pytest.raises(EngineError, match=line) as error:
            list(engine(MANY))
        assert str(error.value).endswith("Given up after 2 failures in a row.")
        assert "; 40 of 40 requests are unanswered." in str(error.value)
        assert len(fake.asked) == 2


def test_nobody_goes_on_waiting_when_a_call_is_given_up(fake):
    engine = engine_of(fake, tries=1, patience=0.5)
    freed = threading.Event()
    fake.completes = lambda handler, number, body: freed.wait(30)
    with pytest.raises(EngineError, match=r"has not answered for 0\.5 s"):
        list(engine(MANY))
    until = time.monotonic() + 5
    while (left := waiting(fake)) and time.monotonic() < until:
        time.sleep(0.05)
    freed.set()
    assert left == 0


def waiting(server: Fake) -> int:
    """How many threads wait for its answers."""
    return sum(thread.name == server.url for thread in threading.enumerate())


def test_failures_with_answers_between_them_are_not_counted_together(fake):
    engine = engine_of(fake, tries=2, at_once=1)
    fake.completes = lambda handler, number, body: (fails if number % 5 == 4 else well)(
        handler, number, body
    )
    assert_all_answered_once(engine)
    assert len(fake.asked) == 40 + 40 // 4 - 1


def test_a_request_that_is_refused_is_not_asked_again(fake):
    engine = engine_of(fake)
    said = {"error": {"message": "This model's maximum context length is 8 tokens."}}
    fake.completes = lambda handler, number, body: handler.say(400, said)
    with pytest.raises(EngineError, match="refuses /v1/completions: 400: This model's maximum"):
        list(engine(MANY[:1]))
    assert len(fake.asked) == 1


def test_nobody_at_the_address_is_one_line(fake):
    engine = engine_of(fake, tries=2, patience=0.5)
    fake.die()
    time.sleep(0.1)
    began = time.monotonic()
    with pytest.raises(EngineError, match=r"has not answered /health for 0.5 s; 40 of 40 requests"):
        list(engine(MANY))
    assert time.monotonic() - began < 5


def test_weights_wait_for_a_server_that_comes_back(fake):
    engine = engine_of(fake)
    fake.die()
    threading.Timer(0.5, fake.rise, (fake.port,)).start()
    engine.load(NEW)
    assert_all_answered_once(engine)


def test_who_wants_no_more_answers_lets_go_of_the_server(fake):
    engine = engine_of(fake, at_once=4)
    answers = engine(MANY)
    next(answers)
    answers.close()
    time.sleep(0.1)
    asked = len(fake.asked)
    assert asked < 40
    assert_all_answered_once(engine)
    assert len(fake.asked) == asked + 40
