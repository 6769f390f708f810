"""Environment steps that run outside the event loop, so that the batcher can wait for them.

The batcher generates for many rollouts at once and first waits for all pending environment steps.
Otherwise the composition of its batches, and with it floating-point rounding, would depend on the
latency of the environment.
"""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager, nullcontext

from grupo.util.event_loop import RolloutLoop


@contextmanager
def pending_env_step() -> Generator[None]:
    """Mark an environment step as pending: generation waits until the block ends.

    The block itself must not wait for the policy. In an event loop other than a `RolloutLoop` no
    policy generates, and the mark has no effect.
    """
    loop = asyncio.get_running_loop()
    with loop.external_work() if isinstance(loop, RolloutLoop) else nullcontext():
        yield
