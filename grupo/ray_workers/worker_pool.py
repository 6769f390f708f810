"""Actors that hold one environment, replaced when they are lost."""

import asyncio
import os
from collections.abc import AsyncGenerator, Collection
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from threading import Lock
from typing import Any

from grupo.envs.timeouts import CallSlots
from grupo.ray_workers.cluster import check_resources, connect, has_machines
from grupo.ray_workers.env_worker import EnvWorker
from grupo.util.errors import ConfigError

START_SECONDS = 180.0  # in which an actor has a place in the cluster and has built its environment
CHECK_SECONDS = 2.0  # after which the cluster is checked while an actor starts
MAX_CALLS = 64  # calls that an actor works on at the same time


class CallLostError(Exception):
    """The actor of a call ended, or did not answer in time."""


@dataclass(frozen=True)
class PoolSpec:
    """The actors of one environment.

    Args:
        env_data: The environment as JSON.
        workers: Number of actors.
        cpus: CPUs that Ray reserves for each.
        address: Address of the cluster.
    """

    env_data: str
    workers: int
    cpus: float
    address: str


@dataclass
class Worker:
    """One actor.

    Args:
        actor: Ray's handle of an `EnvWorker`.
        started: Reference to the result of its `start`.
        is_ready: True once it has built its environment.
    """

    actor: Any
    started: Any
    is_ready: bool = False


@dataclass
class Slot:
    """The place of one actor after another.

    Args:
        worker: The present actor.
        calls: Limits the calls at the same time.
        repeated: Limits the repeated calls, each of which runs alone, to one.
        load: Calls that wait or run.
    """

    worker: Worker
    calls: CallSlots = field(default_factory=lambda: CallSlots(MAX_CALLS))
    repeated: CallSlots = field(default_factory=lambda: CallSlots(1))
    load: int = 0


class WorkerPool:
    """Calls of an environment in actors, from any event loop of this process.

    Args:
        spec: The environment, and number and place of the actors.
    """

    def __init__(self, spec: PoolSpec) -> None:
        self.ray = connect(spec.address)
        self.spec = spec
        demand = f"env.workers: {spec.workers} actors with cpus={spec.cpus:g} each need"
        check_resources(self.ray, "CPU", spec.workers * spec.cpus, demand)
        self.lock = Lock()
        self.openings = count()
        self.slots = [Slot(self._new_worker()) for _ in range(spec.workers)]

    def check(self) -> None:
        """Wait until all actors have built the environment; raises `ConfigError` if one cannot."""
        references = [slot.worker.started for slot in self.slots]
        try:
            problems = self.ray.get(references, timeout=START_SECONDS)
        except self.ray.exceptions.GetTimeoutError as error:
            raise ConfigError(
                f"env: not all of {len(references)} actors of Ray have started within"
                f" {START_SECONDS:g} s. Other programs may use the CPUs of the cluster."
            ) from error
        except self.ray.exceptions.RayError as error:
            raise ConfigError(f"env: an actor of Ray does not start: {describe(error)}") from error
        for problem in filter(None, problems):
            raise ConfigError(f"env: an actor of Ray cannot build the environment: {problem}")

    def least_busy(self, avoided: Collection[int] = ()) -> int:
        """The index of the actor with the fewest calls, another one than `avoided` if there is."""
        indices = [i for i in range(len(self.slots)) if i not in avoided]
        return min(indices or range(len(self.slots)), key=lambda i: self.slots[i].load)

    async def call(
        self, index: int, arguments: tuple[Any, ...], time_limit: float, *, alone: bool
    ) -> bytes:
        """The result of a call of `EnvWorker.call`.

        Args:
            index: Index of the actor.
            arguments: Arguments of the call.
            time_limit: Seconds until the actor must have answered.
            alone: No other call runs in the actor meanwhile: that of an answer which ends its
                process then costs no other rollout.

        Raises:
            CallLostError: The actor has no answer; another one takes its place.
        """
        slot = self.slots[index]
        async with self._turn(slot, alone):
            worker = slot.worker
            try:
                return await self._call(worker, arguments, time_limit)
            except self.ray.exceptions.RayError as error:
                self._replace(slot, worker)
                raise CallLostError(describe(error)) from error
            except CallLostError:
                self._replace(slot, worker)
                raise

    async def _call(self, worker: Worker, arguments: tuple[Any, ...], time_limit: float) -> bytes:
        if not worker.is_ready:
            if problem := await self._start_problem(worker):
                raise CallLostError(f"it cannot build the environment: {problem}")
            worker.is_ready = True
        return await in_time(worker.actor.call.remote(*arguments), time_limit, "did not answer")

    async def _start_problem(self, worker: Worker) -> str:
        """Wait until an actor has started; returns why it cannot build the environment, or "".

        Raises:
            CallLostError: It does not start in time, or the cluster has no machine for it.
        """
        started = asyncio.ensure_future(in_time(worker.started, START_SECONDS, "did not start"))
        while not (await asyncio.wait([started], timeout=CHECK_SECONDS))[0]:
            if not await asyncio.to_thread(has_machines, self.ray):
                started.cancel()
                raise CallLostError("no machine of the Ray cluster is alive")
        return started.result()

    @asynccontextmanager
    async def _turn(self, slot: Slot, alone: bool) -> AsyncGenerator[None]:
        """One of the calls that a slot works on, or all of them."""
        with self.lock:
            slot.load += 1
        try:
            async with AsyncExitStack() as stack:
                if alone:
                    await stack.enter_async_context(slot.repeated)
                for _ in range(MAX_CALLS if alone else 1):
                    await stack.enter_async_context(slot.calls)
                yield
        finally:
            with self.lock:
                slot.load -= 1

    def _replace(self, slot: Slot, lost: Worker) -> None:
        """Put a new actor in the place of a lost one, unless another call has done so."""
        with self.lock:
            if slot.worker is lost:
                with suppress(self.ray.exceptions.RayError):  # it has ended already
                    self.ray.kill(lost.actor)
                slot.worker = self._new_worker()

    def _new_worker(self) -> Worker:
        options = {"num_cpus": self.spec.cpus, "max_restarts": 0, "max_task_retries": 0}
        remote = self.ray.remote(EnvWorker).options(
            **options, max_concurrency=2 * MAX_CALLS, scheduling_strategy="SPREAD"
        )
        actor = remote.remote(self.spec.env_data, os.getcwd())
        return Worker(actor, actor.start.remote())


@lru_cache(maxsize=1)
def pool_of(spec: PoolSpec) -> WorkerPool:
    """The actors of an environment; those of the previous one end when nothing uses them."""
    return WorkerPool(spec)


async def in_time(reference: Any, seconds: float, problem: str) -> Any:
    """The value of a reference of Ray; raises `CallLostError` if there is none in time."""
    try:
        async with asyncio.timeout(seconds):
            return await reference
    except TimeoutError as error:
        raise CallLostError(f"it {problem} within {seconds:g} s") from error


def describe(error: Exception) -> str:
    """The type of an error of Ray and the first line of its text."""
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
