"""Threads that work for rewards: one goes on to the next work, and who hangs is replaced."""

import os
import threading
from queue import SimpleQueue

from grupo.envs import daemon_threads

PATIENCE = 10.0


def who(said: "SimpleQueue[str | int]") -> None:
    said.put(threading.get_ident())


def test_whoever_is_done_takes_on_the_next():
    said = SimpleQueue[str | int]()
    seen = set()
    for _ in range(50):
        daemon_threads.run_in_worker(lambda: who(said))
        seen.add(said.get(timeout=PATIENCE))
    assert len(seen) < 10  # one may be given the next before it says that it is done
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "reward")


def test_work_that_waits_holds_nobody_up():
    said, gate = SimpleQueue[str | int](), threading.Event()

    def waits() -> None:
        gate.wait(PATIENCE)
        said.put("waited")

    for _ in range(20):
        daemon_threads.run_in_worker(waits)
    daemon_threads.run_in_worker(lambda: said.put("not"))
    assert said.get(timeout=PATIENCE) == "not"
    gate.set()
    assert [said.get(timeout=PATIENCE) for _ in range(20)] == ["waited"] * 20


def test_a_forked_process_has_threads_of_its_own():
    said = SimpleQueue[str | int]()
    for _ in range(3):
        daemon_threads.run_in_worker(lambda: who(said))
    parents = {said.get(timeout=PATIENCE) for _ in range(3)}
    assert parents
    child = os.fork()
    if not child:
        daemon_threads.run_in_worker(lambda: who(said))
        code = 1
        try:
            said.get(timeout=PATIENCE)
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
