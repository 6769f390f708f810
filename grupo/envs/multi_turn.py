"""A world of many turns: it answers what the policy says, pays for it, and ends it."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.rng import derive_key
from grupo.core.types import Observation, RewardResult, Rollout, Task
from grupo.envs.on_failure import FailureHandler, drop_rollout
from grupo.envs.scoring import RewardTerm, apply_failure_handler, check_time_limit, score_rollouts
from grupo.envs.session_cache import EnvFactory, SessionCache, SessionState, turn_texts
from grupo.envs.timeouts import MAX_CONCURRENT

RESERVED_TERMS = (
    "world",
    "turns",
    "over",
)  # the parts of a reward that say how it went in the world
NUM_LABELS = 1 << 24  # whole numbers that a float32 can hold
NO_ROOM_ERROR = "the world's first words left no room for an answer"

# of every loop, for as long as it runs: a world by its id, and its sessions
_open_caches: WeakKeyDictionary[
    asyncio.AbstractEventLoop, dict[int, tuple[object, SessionCache]]
] = WeakKeyDictionary()


@component
class MultiTurn:
    """Sessions of a world, `turns` long at most; the reward is what it pays and `rewards` say.

    A text that the world says after its first is a message of `role`, where one is given. It may
    take `time_limit` seconds for a turn, and `at_once` sessions are stepped at a time. Where it
    raises or hangs the rollout is over and has failed: `on_failure` decides.

    Parts besides those of `rewards`: `world` is what it paid in all, `turns` how many the policy
    took, `over` whether the world ended it, and whatever the world counts. Marks: `reward`, paid
    at the last action of a turn, the rewards' sum with the last of all; `state` and `action`, a
    number for what the world had said before the turn, and for what the policy said in it.
    """

    env_factory: EnvFactory
    rewards: tuple[RewardTerm, ...] = ()
    max_turns: int = 16
    role: str = ""
    time_limit: float = 10.0
    max_concurrent: int = MAX_CONCURRENT
    on_failure: FailureHandler = drop_rollout

    def __post_init__(self) -> None:
        names = [part.name for part in self.rewards]
        if len({*names, *RESERVED_TERMS}) < len(names) + len(RESERVED_TERMS):
            raise ConfigError(
                f"rewards: named {names}. Allowed: no name twice, none of {RESERVED_TERMS}."
            )
        for name, value in (("turns", self.max_turns), ("at_once", self.max_concurrent)):
            if value < 1:
                raise ConfigError(f"{name}: {value}. Allowed: 1 or more.")
        check_time_limit(self.time_limit)

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        stage = await self._state(task, rollout)
        if not rollout.turns:  # even a rollout that has failed must begin
            return stage.results[0].observation if stage.results else task.prompt
        if stage.done or self._is_done(rollout):
            return None
        return self._as_message(stage.results[-1].observation)

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        stages = await asyncio.gather(*(self._state(task, rollout) for rollout in rollouts))
        judged = [RewardResult(0.0)] * len(rollouts)
        if self.rewards:
            judged = await score_rollouts(self.rewards, task, rollouts, self.time_limit)
        return apply_failure_handler(
            task, map(_reward_result, rollouts, stages, judged), self.on_failure
        )

    async def _state(self, task: Task, rollout: Rollout) -> SessionState:
        """How far the rollout has come."""
        return await self._session_cache.state_after(task, turn_texts(rollout))

    def _is_done(self, rollout: Rollout) -> bool:
        """Has it taken all its turns, or had no room to answer?"""
        silent = any(not action.items for _, action in rollout.turns[-1:])
        return silent or len(turn_texts(rollout)) >= self.max_turns

    @property
    def _session_cache(self) -> SessionCache:
        worlds = _open_caches.setdefault(asyncio.get_running_loop(), {})
        if id(self) not in worlds:
            worlds[id(self)] = (
                self,
                SessionCache(self.env_factory, self.time_limit, self.max_concurrent),
            )
        return worlds[id(self)][1]

    def _as_message(self, observation: Observation) -> Observation:
        alone = isinstance(observation, str) and self.role
        return ({"role": self.role, "content": observation},) if alone else observation


def _reward_result(rollout: Rollout, state: SessionState, scored: RewardResult) -> RewardResult:
    """What one rollout was paid and judged to be worth."""
    heard = state.results[1:]
    counts = Counter[str]()
    for one in heard:
        counts.update(one.counts)
    paid = sum(one.reward for one in heard)
    own = {"world": paid, "turns": float(len(heard)), "over": float(state.done)}
    parts = {**{name: float(x) for name, x in counts.items()}, **own, **scored.reward_terms}
    silent = "" if rollout.length else NO_ROOM_ERROR if rollout.turns else "it never had a turn"
    failed = state.error or silent or scored.error
    if failed:
        return RewardResult(reward_terms=parts, error=failed)
    marks = {**_step_values(rollout, state, scored.reward), **scored.step_values}
    return RewardResult(paid + scored.reward, parts, marks)


def _step_values(
    rollout: Rollout, state: SessionState, outcome_reward: float
) -> dict[str, tuple[float, ...]]:
    paid = [one.reward for one in state.results[1:]]
    paid[-1] += outcome_reward
    states = [hash_label(one.observation) for one in state.results]
    actions = [hash_label(text) for text in turn_texts(rollout)]
    turn = turn_indices(rollout)
    return {
        "reward": _at_turn_ends(rollout, turn, paid),
        "state": tuple(states[t] for t in turn),
        "action": tuple(actions[t] for t in turn),
    }


def turn_indices(rollout: Rollout) -> list[int]:
    """Which turn each part of the rollout belongs to."""
    turns, turn = [], -1
    for seen, action in rollout.turns:
        turn += bool(action.items and (seen or turn < 0))
        turns += [turn] * len(action.items)
    return turns


def hash_label(observation: Observation) -> float:
    """A number for what was said: the same for the same, else another but by a rare chance.

    >>> hash_label("left") == hash_label("left") != hash_label("right")
    True
    """
    return float(derive_key(0, observation) % NUM_LABELS)


def _at_turn_ends(
    rollout: Rollout, turn_of_token: list[int], turn_rewards: list[float]
) -> tuple[float, ...]:
    """What every turn was paid, at its last part that is learned from."""
    learned = [action.in_loss for _, action in rollout.turns for _ in action.items]
    ends = {
        t: i
        for learns in (False, True)
        for i, t in enumerate(turn_of_token)
        if learned[i] >= learns
    }
    marks = [0.0] * len(turn_of_token)
    for t, i in ends.items():
        marks[i] = turn_rewards[t]
    return tuple(marks)
