"""An environment whose replies and scores are computed by actors of a Ray cluster."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from grupo.core.component import component
from grupo.core.interfaces import Env, EnvSpec
from grupo.core.pending_env_steps import pending_env_step
from grupo.core.ranges import FiniteSeconds, NonNegativeFloat, PositiveInt
from grupo.core.serialization import to_data
from grupo.core.types import Observation, RewardResult, Rollout, Task
from grupo.core.usage import add_external_usage
from grupo.envs.multiplayer import MultiplayerEnv
from grupo.envs.session_cache import StateKey, state_key, turn_texts
from grupo.ray_workers.cluster import LOCAL, check_address
from grupo.ray_workers.env_worker import result_of
from grupo.ray_workers.messages import from_bytes, to_bytes
from grupo.ray_workers.worker_pool import CallLostError, PoolSpec, WorkerPool, pool_of
from grupo.util.errors import ConfigError

LOST_CALLS = "env_calls_lost"  # the metric `usage/env_calls_lost`


@component
class OnRay:
    """An environment in actors of a Ray cluster: its sessions, tools, rewards and judges.

    Rollouts and rewards are those of the environment itself. All rollouts of a task are played and
    scored in one actor, which keeps their sessions. A call whose actor is lost is repeated, alone,
    in another one, which replays the session from the texts of the rollout. A call that is lost
    `tries` times fails its rollouts, whatever the environment's `on_failure`.

    Args:
        env: The environment; recipe.json must be able to hold it.
        workers: Number of actors.
        cpus: CPUs that Ray reserves for each actor; a fraction if it mostly waits for a judge.
        tries: Times that a call is made before its rollouts fail.
        time_limit: Seconds in which an actor must answer a call; it is replaced if it does not.
            Longer than the environment takes to score the rollouts of a task.
        address: Cluster: "local" starts one on this machine for this process, "auto" is the one
            that runs on this machine, HOST:PORT any other.
    """

    env: EnvSpec
    workers: PositiveInt = 1
    cpus: NonNegativeFloat = 1.0
    tries: PositiveInt = 3
    time_limit: FiniteSeconds = 600.0
    address: str = LOCAL

    def __post_init__(self) -> None:
        check_address(self.address, "address")
        if isinstance(self.env, MultiplayerEnv | OnRay):
            raise ConfigError(
                f"env: {type(self.env).__name__}. Allowed with OnRay: an environment whose rollouts"
                " do not wait for one another, and that is not on Ray already."
            )

    def check(self) -> None:
        """Start the actors; raises `ConfigError` if Ray or the environment makes it impossible."""
        self._pool().check()

    def inner_env(self) -> EnvSpec:
        """The environment that the actors hold."""
        return self.env

    def open(self) -> Env:
        """The environment with new sessions, for use in one event loop."""
        pool = self._pool()
        return EnvOnRay(self, pool, next(pool.openings))

    def _pool(self) -> WorkerPool:
        data = json.dumps(to_data(self.env, "env"))
        return pool_of(PoolSpec(data, self.workers, self.cpus, self.address))


@dataclass(frozen=True)
class EnvOnRay:
    """An `OnRay` in use.

    Args:
        config: The description of the environment.
        pool: The actors.
        opening: Number of this environment among those that use the actors.
        worker_of_task: The index of the actor of each task, by key.
        lost_replies: Why a reply was lost, by task and texts.
    """

    config: OnRay
    pool: WorkerPool
    opening: int
    worker_of_task: dict[str, int] = field(default_factory=dict)
    lost_replies: dict[StateKey, str] = field(default_factory=dict)

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        if rollout.turns and self.lost_reply_cause(task, rollout):
            return None
        with pending_env_step():
            try:
                return await self._call("reply", task, rollout)
            except CallLostError as error:
                self.lost_replies[state_key(task, turn_texts(rollout))] = str(error)
                return None if rollout.turns else task.prompt  # a rollout needs a first turn

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        losses = [self.lost_reply_cause(task, rollout) for rollout in rollouts]
        whole = tuple(r for r, loss in zip(rollouts, losses, strict=True) if not loss)
        results = iter(await self._score(task, whole))
        return [
            _failed(task, index, loss) if loss else next(results)
            for index, loss in enumerate(losses)
        ]

    async def _score(self, task: Task, rollouts: tuple[Rollout, ...]) -> Sequence[RewardResult]:
        if not rollouts:
            return ()
        try:
            return await self._call("score", task, rollouts)
        except CallLostError as error:
            return [_failed(task, index, str(error)) for index in range(len(rollouts))]

    def lost_reply_cause(self, task: Task, rollout: Rollout) -> str:
        """Why a reply to a beginning of the rollout was lost; "" if none was."""
        if not self.lost_replies:
            return ""
        texts = turn_texts(rollout)
        keys = (state_key(task, texts[:length]) for length in range(len(texts) + 1))
        return next((self.lost_replies[key] for key in keys if key in self.lost_replies), "")

    async def _call(self, method: str, task: Task, content: Any) -> Any:
        """The result of a method of the environment in an actor.

        Raises:
            CallLostError: Each of the tries was lost.
        """
        arguments = to_bytes((task, content), f"env: task {task.location or task.key}")
        causes: list[str] = []
        index = self.worker_of_task.setdefault(task.key, self.pool.least_busy())
        while len(causes) < self.config.tries:
            try:
                reply = await self.pool.call(
                    index,
                    (self.opening, method, arguments),
                    self.config.time_limit,
                    alone=bool(causes),
                )
            except CallLostError as error:
                add_external_usage({LOST_CALLS: 1})
                causes.append(str(error))
                index = self._another_worker(task, index)
            else:
                return _unpack(reply)
        raise CallLostError(f"the actor of Ray was lost {len(causes)} times: {causes[-1]}")

    def _another_worker(self, task: Task, lost: int) -> int:
        """The index of the actor that a task moves to after a loss, one for all its rollouts."""
        if self.worker_of_task[task.key] == lost:
            self.worker_of_task[task.key] = self.pool.least_busy(avoided=(lost,))
        return self.worker_of_task[task.key]


def _unpack(reply: bytes) -> Any:
    """The value in an actor's reply; what its rewards have counted is added to this step's."""
    content = from_bytes(reply)
    add_external_usage(content["usage"])
    return result_of(content)


def _failed(task: Task, index: int, loss: str) -> RewardResult:
    return RewardResult(error=f"task {task.location or task.key}, rollout {index}: {loss}")
