"""The limit on calls that run at the same time holds in all event loops together."""

import asyncio
from threading import Event, Thread

from grupo.envs.timeouts import CallSlots

TIMEOUT = 10.0


def test_slots_are_shared_by_the_event_loops_of_all_threads():
    slots, release = CallSlots(1), Event()
    first_runs, events = Event(), []

    async def first() -> None:
        async with slots:
            first_runs.set()
            await asyncio.to_thread(release.wait, TIMEOUT)
            events.append("first")

    async def second() -> None:
        asyncio.get_running_loop().call_later(0.05, release.set)
        async with slots:
            events.append("second")

    thread = Thread(target=asyncio.run, args=(first(),))
    thread.start()
    assert first_runs.wait(TIMEOUT)
    asyncio.run(second())
    thread.join(TIMEOUT)
    assert events == ["first", "second"]


def test_slots_are_granted_in_the_order_of_the_requests():
    async def run_all() -> list[int]:
        slots, order = CallSlots(2), []

        async def call(i: int) -> None:
            async with slots:
                order.append(i)
                await asyncio.sleep(0.001)

        await asyncio.gather(*map(call, range(6)))
        return order

    assert asyncio.run(run_all()) == [0, 1, 2, 3, 4, 5]


def test_a_cancelled_request_keeps_no_slot():
    async def run_all() -> list[str]:
        slots, events = CallSlots(1), []

        async def call(name: str) -> None:
            async with slots:
                events.append(name)
                await asyncio.sleep(0.01)

        running, cancelled, last = (asyncio.create_task(call(name)) for name in "abc")
        await asyncio.sleep(0.001)
        cancelled.cancel()
        await asyncio.gather(running, last)

        granted = asyncio.create_task(call("d"))  # cancelled after the slot has been granted
        await asyncio.sleep(0)
        granted.cancel()
        await call("e")
        return events

    assert asyncio.run(asyncio.wait_for(run_all(), TIMEOUT)) == ["a", "c", "e"]
