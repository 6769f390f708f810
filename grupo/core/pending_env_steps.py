"""Environment steps that run outside the event loop, so that the batcher can wait for them.

The batcher generates for many rollouts at once and first waits for all pending environment steps.
Otherwise the composition of its batches, and with it floating-point rounding, would depend on the
latency of the environment.
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
    """Mark an environment step as pending: generation waits until the block ends.

    The block itself must not wait for the policy.
    """
    loop = asyncio.get_running_loop()
    step = loop.create_future()
    pending = _pending_env_steps.setdefault(loop, set())
    pending.add(step)
    try:
        yield
    finally:
        pending.remove(step)
        step.set_result(None)


async def wait_for_env_steps() -> bool:
    """Wait until no environment step is pending; returns False if there was none to wait for."""
    pending = _pending_env_steps.setdefault(asyncio.get_running_loop(), set())
    waited = bool(pending)
    while pending:
        await asyncio.wait([*pending])
    return waited
