"""Agents behind an API: any program that calls a policy by OpenAI's API, as an environment."""

import asyncio
import weakref
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from grupo.core.component import component
from grupo.core.interfaces import Env
from grupo.core.model_call import ModelCall
from grupo.core.pending_env_steps import pending_env_step
from grupo.core.ranges import FiniteSeconds, NonEmptyString, PositiveInt
from grupo.core.types import Observation, RewardResult, Rollout, Task
from grupo.envs.on_failure import FailureHandler, drop_rollout
from grupo.envs.proxy.agents import Agent, Event, end_agents
from grupo.envs.proxy.calls import call_turns, first_observation, num_prompt_tokens, observation_of
from grupo.envs.proxy.harness import HarnessFunction, check_command, check_installed, run_harness
from grupo.envs.proxy.results import agent_result
from grupo.envs.proxy.session import Call, Ended
from grupo.envs.proxy.slots import AgentSlots
from grupo.envs.proxy.tool_rendering import ToolRendering
from grupo.envs.reward_term import RewardTerm
from grupo.envs.scoring import apply_failure_handler, score_rollouts
from grupo.envs.session_cache import turn_texts
from grupo.envs.tools.formats import FormatName
from grupo.envs.tools.tool_env import check_description
from grupo.util.errors import ConfigError
from grupo.util.optional_deps import optional_dependency

RolloutKey = tuple[str, tuple[str, ...]]  # the key of the first agent, and the policy's texts
OTHER_CALLS_ERROR = "the agent made other calls when its answers were repeated"
RESERVED_TERMS = (
    *("agent_reward", "calls", "contexts", "tool_calls", "call_limit", "context_full"),
    "left_threads",
)


@component
class ProxyEnv:
    """An agent that calls the policy over an API of OpenAI's form, as the environment of a task.

    Each rollout starts the agent once, with a base URL of its own. Every answer that the agent
    requests, as a chat completion or as a response, is a turn of the rollout, in the exact tokens
    and with the log-probabilities that the policy sampled. A request whose messages continue an
    earlier conversation, with the answer unchanged, continues its tokens. Any other request begins
    a context of its own, which becomes a row of the batch. The rollout is over when the agent ends.

    The policy samples from the distribution that is trained: `temperature`, `top_p` and other
    options of a request that would change it do not apply, and are counted.

    Reward terms beside those of `rewards`: `agent_reward` (the number that a function returned),
    `calls`, `contexts`, `tool_calls`, `call_limit` (1 if the agent wanted more calls than
    `max_calls`), `context_full` (1 if a call left no room for an answer), `not_applied/OPTION`, the
    number of calls with an option that did not apply, and, where there are any, `left_threads`, the
    number of functions that have not ended with their rollouts. A rollout that one of these limits
    ends is scored as it is, without a number of the agent.

    Args:
        harness: The agent. A function of the task and the `PolicyAddress`, plain or async, or the
            address of one (`file.py:name`, `module:name`), which runs in a thread. It may return a
            number, or a mapping of numbers of which "score" is the reward. Any other text is a
            command line, which runs in a process of its own, with OPENAI_BASE_URL and
            OPENAI_API_KEY set, `{base_url}`, `{api_key}`, `{model}` and `{prompt}` replaced in its
            arguments, and the task as a line of JSON on its standard input.
        rewards: Reward terms that score the whole rollout.
        max_calls: Calls after which a rollout ends.
        time_limit: Seconds that the agent may take from an answer to its next call or its end, and
            that one call of a reward function may take.
        max_concurrent: Agents at work at the same time, from their start to their end.
        on_failure: Decides the result of a rollout whose agent or reward failed.
        format: How the policy writes tool calls, as in `Toolbox`.
        described_by: The chat template describes the tools of a request, and renders calls and
            results; or the prompt describes them, and calls and results are text. "auto" is
            replaced as in `Toolbox`.
    """

    harness: HarnessFunction | NonEmptyString
    rewards: tuple[RewardTerm, ...] = ()
    max_calls: PositiveInt = 32
    time_limit: FiniteSeconds = 60.0
    max_concurrent: PositiveInt = 64
    on_failure: FailureHandler = drop_rollout
    format: FormatName = "auto"
    described_by: Literal["auto", "template", "prompt"] = "auto"

    def __post_init__(self) -> None:
        names = [term.name for term in self.rewards]
        if len({*names, *RESERVED_TERMS}) < len(names) + len(RESERVED_TERMS):
            raise ConfigError(
                f"rewards: named {names}. Allowed: no name twice, none of {RESERVED_TERMS}."
            )
        check_command(self.harness)
        check_description(self.rendering.tool_format, self.described_by)

    @property
    def rendering(self) -> ToolRendering:
        """How tools, calls and results are written."""
        return ToolRendering(self.format, self.described_by)

    def check(self) -> None:
        """Raises `ConfigError` if the server's library or the agent is missing."""
        with optional_dependency("aiohttp", "proxy"):
            import aiohttp  # noqa: F401
        check_installed(self.harness)

    def open(self) -> Env:
        """The environment with agents of its own, for use in one event loop."""
        return ProxySessions(self)


class ProxySessions:
    """A `ProxyEnv` in use: its agents, by the rollouts that they have made so far.

    The first observation of a rollout names its agent. A rollout that branches off from that of its
    agent gets another agent, to which the earlier answers are repeated; it fails if that agent
    makes other calls.

    Args:
        config: The description of the environment.
    """

    def __init__(self, config: ProxyEnv) -> None:
        self.config = config
        self.agents: dict[RolloutKey, Agent] = {}
        self.repetitions: dict[RolloutKey, asyncio.Task[Agent]] = {}
        self.at_work: set[Agent] = set()
        self.slots = AgentSlots(config.max_concurrent, config.time_limit)
        weakref.finalize(self, end_agents, self.at_work)

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        agent, event = await self._event(task, rollout)
        if isinstance(event, Call) and not self._is_cut(rollout):
            return observation_of(rollout, event, agent.key, self.config.rendering)
        self._finish(agent)
        # a rollout needs a first turn even if its agent has made no call
        return None if rollout.turns else first_observation(task, agent.key)

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        config = self.config
        ends = await asyncio.gather(*(self._event(task, rollout) for rollout in rollouts))
        scored: list[RewardResult | None] = [None] * len(rollouts)
        if config.rewards:
            scored = [*await score_rollouts(config.rewards, task, rollouts, config.time_limit)]
        results = []
        for rollout, (agent, event), terms in zip(rollouts, ends, scored, strict=True):
            self._finish(agent)
            ended = event if isinstance(event, Ended) else None
            requests = agent.requests[: len(turn_texts(rollout))]
            results.append(
                agent_result(rollout, requests, ended, terms, config.max_calls, config.rendering)
            )
        return apply_failure_handler(task, results, config.on_failure)

    def close(self) -> None:
        """End all agents; those of unfinished rollouts are started again when they continue."""
        for agent in tuple(self.at_work):
            self._finish(agent)

    async def _event(self, task: Task, rollout: Rollout) -> tuple[Agent, Event]:
        """The agent of a rollout, and its next call or its end."""
        agent = await self._agent(task, rollout)
        return agent, await self._event_of(agent, len(turn_texts(rollout)))

    async def _event_of(self, agent: Agent, number: int) -> Event:
        with pending_env_step():
            event = await agent.event(number)
        self.slots.num_events += 1
        return event

    async def _agent(self, task: Task, rollout: Rollout) -> Agent:
        """The agent that has been given the rollout's answers and no others."""
        if not rollout.turns:
            return await self._begin(task)
        texts = turn_texts(rollout)
        first = rollout.turns[0][0]
        key = first.session if isinstance(first, ModelCall) else ""
        if (key, texts) not in self.agents:
            previous = self.agents.get((key, texts[:-1])) if texts else None
            if previous is None or not previous.has_answered(len(texts) - 1):
                previous = await self._repeated(task, rollout, (key, texts))
            elif not previous.has_ended:
                previous.answer(texts[-1], rollout.last_response, num_prompt_tokens(rollout))
            self.agents[key, texts] = previous
        return self.agents[key, texts]

    async def _begin(self, task: Task) -> Agent:
        """A new agent, at work as soon as there is a place."""
        run = partial(run_harness, self.config.harness, task)
        agent = Agent(run, self.config.time_limit, self.config.rendering)
        self.agents[agent.key, ()] = agent
        if await self.slots.acquire():
            self.at_work.add(agent)
            agent.start()
        else:
            places = f"max_concurrent={self.config.max_concurrent}"
            agent.fail(f"all places for agents are taken by rollouts that wait for it ({places})")
        return agent

    async def _repeated(self, task: Task, rollout: Rollout, key: RolloutKey) -> Agent:
        """A new agent that has been given the rollout's answers; equal rollouts share one."""
        if key not in self.repetitions:
            self.repetitions[key] = asyncio.create_task(self._repeat(task, rollout))
        return await asyncio.shield(self.repetitions[key])

    async def _repeat(self, task: Task, rollout: Rollout) -> Agent:
        agent = await self._begin(task)
        for number, (text, turns) in enumerate(
            zip(turn_texts(rollout), call_turns(rollout), strict=True)
        ):
            before = replace(rollout, turns=rollout.turns[: turns[0]])
            after = replace(rollout, turns=rollout.turns[: turns[-1] + 1])
            event = await self._event_of(agent, number)
            observation = rollout.turns[turns[0]][0]
            rendering = self.config.rendering
            if (
                isinstance(event, Ended)
                or observation_of(before, event, "", rendering) != observation
            ):
                agent.fail(OTHER_CALLS_ERROR)
                break
            agent.answer(text, after.last_response, num_prompt_tokens(after))
        return agent

    def _is_cut(self, rollout: Rollout) -> bool:
        """True if the rollout has taken all its calls, or the policy could not answer the last."""
        is_unanswered = any(not response.items for _, response in rollout.turns[-1:])
        return is_unanswered or len(turn_texts(rollout)) >= self.config.max_calls

    def _finish(self, agent: Agent) -> None:
        """End an agent whose rollout is over, and give its place to another one."""
        if agent in self.at_work:
            self.at_work.remove(agent)
            agent.end()
            self.slots.release()
            self.slots.num_events += 1
