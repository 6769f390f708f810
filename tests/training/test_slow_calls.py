"""Messages about calls of an environment that take long."""

import time

from grupo.core.types import Task
from grupo.training.collect.slow_calls import SlowCalls

TASK = Task("key", "1 + 1 =")


class OwnEnv:
    pass


def test_a_call_that_takes_long_is_named_again_after_twice_the_time(capsys):
    calls = SlowCalls(patience=0.1)
    with calls.watch(OwnEnv(), "reply", TASK):
        time.sleep(0.33)  # messages after 0.1 and 0.2 s; the next one would follow after 0.4 s
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("Waiting for OwnEnv.reply for task key: ") for line in lines)


def test_short_calls_are_not_named_and_the_thread_ends(capsys):
    calls = SlowCalls(patience=0.1)
    for _ in range(3):
        with calls.watch(OwnEnv(), "score", TASK):
            pass
    thread = calls.thread
    assert thread
    thread.join(timeout=5)
    assert not thread.is_alive()
    assert capsys.readouterr().err == ""
    with calls.watch(OwnEnv(), "score", TASK):
        assert calls.thread not in (None, thread)
