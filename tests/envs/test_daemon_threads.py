"""Worker threads for rewards: idle ones are reused, hanging ones replaced."""

import os
import threading
from queue import SimpleQueue

from grupo.envs import daemon_threads

TIMEOUT = 10.0


def put_thread_id(queue: "SimpleQueue[str | int]") -> None:
    queue.put(threading.get_ident())


def test_idle_threads_are_reused():
    queue = SimpleQueue[str | int]()
    thread_ids = set()
    for _ in range(50):
        daemon_threads.run_in_worker(lambda: put_thread_id(queue))
        thread_ids.add(queue.get(timeout=TIMEOUT))
    assert len(thread_ids) < 10  # the next job may arrive before a thread has become idle
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "reward")


def test_a_waiting_job_does_not_delay_other_jobs():
    queue, gate = SimpleQueue[str | int](), threading.Event()

    def wait() -> None:
        gate.wait(TIMEOUT)
        queue.put("waited")

    for _ in range(20):
        daemon_threads.run_in_worker(wait)
    daemon_threads.run_in_worker(lambda: queue.put("not"))
    assert queue.get(timeout=TIMEOUT) == "not"
    gate.set()
    assert [queue.get(timeout=TIMEOUT) for _ in range(20)] == ["waited"] * 20


def test_a_forked_process_has_threads_of_its_own():
    queue = SimpleQueue[str | int]()
    for _ in range(3):
        daemon_threads.run_in_worker(lambda: put_thread_id(queue))
    parent_threads = {queue.get(timeout=TIMEOUT) for _ in range(3)}
    assert parent_threads
    child = os.fork()
    if not child:
        daemon_threads.run_in_worker(lambda: put_thread_id(queue))
        code = 1
        try:
            queue.get(timeout=TIMEOUT)
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
