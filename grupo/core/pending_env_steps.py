"""Who is away from the event loop, and may ask the policy again once back: worlds at work.

Whoever answers many at once waits for them. Whom it answers together would else depend on how long
each of them took.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

_pending_env_steps: WeakKeyDictionary[asyncio.AbstractEventLoop, set[asyncio.Future[None]]] = (
    WeakKeyDictionary()
)


@contextmanager
def pending_env_step() -> Iterator[None]:
    """In here nobody asks the policy, and those who ask it wait for whoever is in here.

    What happens in here must not wait for the policy.
    """
    loop = asyncio.get_running_loop()
    back, gone = loop.create_future(), _pending_env_steps.setdefault(loop, set())
    gone.add(back)
    try:
        yield
    finally:
        gone.remove(back)
        back.set_result(None)


async def wait_for_env_steps() -> bool:
    """Wait for those who are away, and for whoever goes meanwhile; was anybody?"""
    gone = _pending_env_steps.setdefault(asyncio.get_running_loop(), set())
    anybody = bool(gone)
    while gone:
        await asyncio.wait([*gone])
    return anybody
