"""A taskset of verifiers as an agent of `ProxyEnv`: a harness plays its tasks with the policy."""

from collections.abc import Mapping, Sequence
from typing import Any

from grupo.core.component import component
from grupo.core.ranges import NonEmptyString, PositiveInt
from grupo.core.types import Task
from grupo.envs.background_loop import BackgroundLoop
from grupo.envs.proxy import PolicyAddress
from grupo.envs.tasksets.loading import (
    EnvArgs,
    RuntimeName,
    episode_config,
    import_tasksets,
    taskset_config,
)
from grupo.util.errors import ConfigError
from grupo.util.loader_errors import loader_errors

_loop = BackgroundLoop()  # verifiers has locks and semaphores, which belong to one event loop


@component
class TasksetAgent:
    """A harness of verifiers that plays the tasks of a taskset, as the agent of a `ProxyEnv`.

    The harness calls the policy; the taskset's tools, rewards and metrics are its own. The reward
    of the episode is that of the rollout. Each weighted reward is the reward term
    `agent_reward/NAME`, each metric `agent_reward/metrics/NAME`.

    Args:
        taskset_id: Name of the taskset: an installed package, or a module in the current folder.
        args: Pairs of a field of the taskset's configuration and its value.
        harness: Name of the harness, such as "bash". "" is that of the taskset, or "null", a chat
            with the taskset's own tools, if the taskset has none.
        harness_args: Pairs of a field of the harness's configuration and its value.
        runtime: Where the harness runs. "" is this machine for a harness that executes no code of
            the policy, and docker for any other.
        max_turns: Calls after which verifiers ends the episode and scores it.
    """

    taskset_id: NonEmptyString
    args: EnvArgs = ()
    harness: str = ""
    harness_args: EnvArgs = ()
    runtime: RuntimeName = ""
    max_turns: PositiveInt = 32

    @property
    def taskset_config(self) -> Any:
        """The configuration of the taskset."""
        return taskset_config(self.taskset_id, self.args)

    def check(self) -> None:
        """Raises `ConfigError` if the taskset or the harness cannot be loaded."""
        with loader_errors(f"env: {self.taskset_id}"):
            import_tasksets().load_environment(self._episode_config())

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task that is none of a taskset."""
        for task in tasks:
            if "taskset_data" not in task.columns:
                raise ConfigError(
                    f"tasks: {task.key!r} is no task of {self.taskset_id}. Leave --tasks out."
                )

    def __call__(self, task: Task, address: PolicyAddress) -> Mapping[str, float]:
        """Play a task with the policy at an address; returns "score" and the further numbers."""
        data = task.columns["taskset_data"]
        return _loop.submit(_play(self._episode_config(), data, address)).result()

    def _episode_config(self) -> Any:
        return episode_config(
            self.taskset_config, self.harness, self.harness_args, self.runtime, self.max_turns
        )


async def _play(config: Any, data: Mapping[str, Any], address: PolicyAddress) -> dict[str, float]:
    """The numbers of an episode, whose servers end with it."""
    vf = import_tasksets()
    env = vf.load_environment(config)
    task_type = type(env.taskset).task_type()
    task = task_type(task_type.data_type().model_validate(data), env.config.taskset.task)
    # the base URL holds the key of the rollout
    client = vf.EvalClientConfig(base_url=address.base_url, api_key_var="")
    async with env.serving():
        episode = await env.run_episode(task, vf.ModelContext(address.model, client))
    return _numbers(episode)


def _numbers(episode: Any) -> dict[str, float]:
    """The reward of an episode as "score", its weighted rewards and its metrics.

    Raises:
        RuntimeError: It failed, has no reward, or the agent ran more than once.
    """
    if not episode.ok:
        errors = [*episode.errors, *(error for trace in episode.traces for error in trace.errors)]
        causes = "; ".join(f"{error.type}: {error.message}" for error in errors)
        raise RuntimeError(causes or "the episode failed without an error")
    if len(episode.traces) != 1:
        raise RuntimeError(f"the agent ran {len(episode.traces)} times. Allowed: once")
    (trace,) = episode.traces
    unscored = [name for name, reward in trace.rewards.items() if reward is None]
    if unscored or not trace.rewards:
        raise RuntimeError(f"no reward: {', '.join(unscored) or 'the task has none'}")
    rewards = {name: reward.value for name, reward in trace.rewards.items()}
    metrics = {f"metrics/{k}": v for k, v in trace.metrics.items() if v is not None}
    return {"score": trace.reward, **rewards, **metrics}
