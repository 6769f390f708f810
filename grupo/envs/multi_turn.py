"""The environment of several turns: games and tools that answer every response of the policy."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from grupo.core.component import component
from grupo.core.interfaces import Env
from grupo.core.ranges import Finite, FiniteSeconds, PositiveInt
from grupo.core.types import Observation, RewardResult, Rollout, Task
from grupo.envs.game_env import EnvFactory
from grupo.envs.on_failure import FailureHandler, drop_rollout
from grupo.envs.reward_term import RewardTerm
from grupo.envs.scoring import apply_failure_handler, score_rollouts
from grupo.envs.session_cache import SessionCache, turn_texts
from grupo.envs.session_steps import SessionState, SessionSteps
from grupo.envs.timeouts import MAX_CONCURRENT
from grupo.util.errors import ConfigError
from grupo.util.rng import derive_key

RESERVED_TERMS = ("env_reward", "turns", "done")  # reward terms that the environment provides
NUM_LABELS = 1 << 24  # a float32 represents integers up to here
NO_ROOM_ERROR = "the first observation left no room for an answer"


@component
class MultiTurn:
    """Sessions of a game environment; the reward is the environment's plus that of reward terms.

    A step that exceeds its `time_limit`, or limits of memory or recursion, is repeated in a new
    session after the texts before it. If these do not hang and the step hangs again, its text is
    the cause: the rollout ends with `answer_error_reward` and the reward term `answer_error`, 1.
    Any other step that hangs, and a reset, is a failure of the environment (`on_failure`).

    Reward terms beside those of `rewards`: `env_reward` (sum of the step rewards), `turns` (number
    of turns that the policy took), `done` (1 if the environment ended the session), and the counts
    of the steps. Step values: `reward` is the step reward at the last token of each turn, with the
    weighted sum of `rewards` added to the last turn; `state` labels the observation before the
    turn, and `action` the text of the turn, with a number that is equal for equal texts.

    Args:
        env_factory: Creates the sessions; the class of a `GameEnv` will do.
        rewards: Reward terms that score the whole rollout.
        max_turns: Turns after which a rollout ends.
        role: Role of the chat message that an observation after the first is wrapped in, such as
            "tool"; "" keeps it plain text.
        time_limit: Seconds that a step, or one call of a reward function, may take.
        max_concurrent: Sessions that are stepped at the same time.
        on_failure: Decides the result of a rollout whose environment or reward raised or hung.
        answer_error_reward: Reward of a step that hangs because of the policy's text; at most that
            of a lost episode, or hanging the environment would be rewarded.
    """

    env_factory: EnvFactory
    rewards: tuple[RewardTerm, ...] = ()
    max_turns: PositiveInt = 16
    role: str = ""
    time_limit: FiniteSeconds = 10.0
    max_concurrent: PositiveInt = MAX_CONCURRENT
    on_failure: FailureHandler = drop_rollout
    answer_error_reward: Finite = 0.0

    def __post_init__(self) -> None:
        names = [term.name for term in self.rewards]
        if len({*names, *RESERVED_TERMS}) < len(names) + len(RESERVED_TERMS):
            raise ConfigError(
                f"rewards: named {names}. Allowed: no name twice, none of {RESERVED_TERMS}."
            )

    def open(self) -> Env:
        """The environment with a cache of sessions, for use in one event loop."""
        return MultiTurnSessions(self, self.session_cache())

    def session_cache(self) -> SessionCache:
        """An empty cache of sessions."""
        steps = SessionSteps(self.env_factory, self.time_limit, self.answer_error_reward)
        return SessionCache(steps, self.max_concurrent)


@dataclass(frozen=True)
class MultiTurnSessions:
    """A `MultiTurn` in use: its fields and its sessions.

    Args:
        config: The description of the environment.
        session_cache: The sessions by task and texts.
    """

    config: MultiTurn
    session_cache: SessionCache

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        state = await self._state(task, rollout)
        if not rollout.turns:  # a rollout needs a first turn even if its session failed
            return state.results[0].observation if state.results else task.prompt
        if state.done or self._is_done(rollout):
            self._close(task, rollout)
            return None
        return self._as_message(state.results[-1].observation)

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        config = self.config
        states = await asyncio.gather(*(self._state(task, rollout) for rollout in rollouts))
        scored = [RewardResult(0.0)] * len(rollouts)
        if config.rewards:
            scored = await score_rollouts(config.rewards, task, rollouts, config.time_limit)
        for rollout in rollouts:
            self._close(task, rollout)
        results = map(reward_result, rollouts, states, scored)
        return apply_failure_handler(task, results, config.on_failure)

    def close(self) -> None:
        """Close all sessions; those of unfinished rollouts are replayed when they continue."""
        self.session_cache.close_all()

    async def _state(self, task: Task, rollout: Rollout) -> SessionState:
        """The state of the session after the rollout's turns."""
        return await self.session_cache.state_after(task, turn_texts(rollout))

    def _close(self, task: Task, rollout: Rollout) -> None:
        """Close the sessions of a rollout that is over."""
        self.session_cache.close_sessions(task, turn_texts(rollout))

    def _is_done(self, rollout: Rollout) -> bool:
        """True if the rollout has taken all its turns, or had no room for its last answer."""
        no_room = any(not response.items for _, response in rollout.turns[-1:])
        return no_room or len(turn_texts(rollout)) >= self.config.max_turns

    def _as_message(self, observation: Observation) -> Observation:
        if isinstance(observation, str) and self.config.role:
            return ({"role": self.config.role, "content": observation},)
        return observation


def reward_result(rollout: Rollout, state: SessionState, scored: RewardResult) -> RewardResult:
    """The result of one rollout: step rewards and counts, joined with those of reward terms."""
    steps = state.results[1:]
    counts = Counter[str]()
    for step in steps:
        counts.update(step.counts)
    env_reward = sum(step.reward for step in steps)
    terms = {name: float(count) for name, count in counts.items()}
    terms |= {"env_reward": env_reward, "turns": float(len(steps)), "done": float(state.done)}
    terms |= scored.reward_terms
    error = state.error or _missing_turn_error(rollout) or scored.error
    if error:
        return RewardResult(reward_terms=terms, error=error)
    step_values = {**_step_values(rollout, state, scored.reward), **scored.step_values}
    return RewardResult(env_reward + scored.reward, terms, step_values)


def _missing_turn_error(rollout: Rollout) -> str:
    if rollout.length:
        return ""
    return NO_ROOM_ERROR if rollout.turns else "the player never had a turn"


def _step_values(
    rollout: Rollout, state: SessionState, outcome_reward: float
) -> dict[str, tuple[float, ...]]:
    rewards = [result.reward for result in state.results[1:]]
    rewards[-1] += outcome_reward
    states = [hash_label(result.observation) for result in state.results]
    actions = [hash_label(text) for text in turn_texts(rollout)]
    turn_of_token = turn_indices(rollout)
    return {
        "reward": _at_turn_ends(rollout, turn_of_token, rewards),
        "state": tuple(states[turn] for turn in turn_of_token),
        "action": tuple(actions[turn] for turn in turn_of_token),
    }


def turn_indices(rollout: Rollout) -> list[int]:
    """The turn that each token of the rollout belongs to; turns as in `turn_texts`."""
    turn_of_token: list[int] = []
    turn = -1
    for observation, response in rollout.turns:
        turn += bool(response.items and (observation or turn < 0))
        turn_of_token += [turn] * len(response.items)
    return turn_of_token


def hash_label(observation: Observation) -> float:
    """A 24-bit hash as a float: equal for equal observations, and rarely for different ones.

    >>> hash_label("left") == hash_label("left") != hash_label("right")
    True
    """
    return float(derive_key(0, observation) % NUM_LABELS)


def _at_turn_ends(
    rollout: Rollout, turn_of_token: list[int], turn_rewards: list[float]
) -> tuple[float, ...]:
    """The reward of every turn at its last token in the loss, or its last one if none is; else 0.

    A forced token at the end of a turn is masked in the loss, and would hide the reward.
    """
    in_loss = [response.in_loss for _, response in rollout.turns for _ in response.items]
    last_tokens: dict[int, int] = {}
    for only_in_loss in (False, True):  # the second pass overwrites the first where it can
        for token, turn in enumerate(turn_of_token):
            if in_loss[token] >= only_in_loss:
                last_tokens[turn] = token
    values = [0.0] * len(turn_of_token)
    for turn, token in last_tokens.items():
        values[token] = turn_rewards[turn]
    return tuple(values)
