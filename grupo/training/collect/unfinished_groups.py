"""Groups that are generated in several steps: a later step runs the sampler again from the start.

The sampler then gets back the replies, observations and scores that earlier steps recorded.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from grupo.core.interfaces import Actor
from grupo.core.types import Observation, RewardResult, Rollout, SolvedTask, Task
from grupo.inference.reply_record import RecordedReply, ReplyRecord, ResumableActor
from grupo.storage import rollout_json
from grupo.util.rng import derive_key

UNLIMITED = 1 << 60  # a number of tokens that no rollout reaches


@dataclass(frozen=True)
class RolloutTokenLimit:
    """The limit of the tokens that a rollout generates within a step.

    Args:
        step: Index of the step that is generated, from 0.
        tokens_per_step: Largest number of tokens of a rollout within the step.
        max_later_steps: Largest number of later steps that continue a group. The last of these
            steps generates the rollouts of the group to their ends.
    """

    step: int
    tokens_per_step: int
    max_later_steps: int

    def max_tokens(self, first_step: int) -> int:
        """Largest number of tokens of a rollout in this step; `UNLIMITED` in the group's last step.

        >>> limit = RolloutTokenLimit(step=5, tokens_per_step=100, max_later_steps=2)
        >>> limit.max_tokens(first_step=4), limit.max_tokens(first_step=3) == UNLIMITED
        (100, True)
        """
        is_last = self.step - first_step >= self.max_later_steps
        return UNLIMITED if is_last else self.tokens_per_step


@dataclass(frozen=True)
class GroupInProgress:
    """A group whose generation has not ended, with the values recorded in earlier steps.

    A freshly drawn group has no recorded values. A group that a step has begun is unfinished.

    Args:
        task: The task as it was drawn.
        first_step: Index of the step in which the group was drawn, from 0.
        rng_label: Label from which the random streams are derived: the index of the sampling round
            in the step, and the index of the group in the round.
        replies: Replies of the engine, by the digest of the request.
        observations: Observations of the environment, by the digest of the rollout before them.
        scores: Scores of the environment, by the digest of the rollouts.
    """

    task: Task
    first_step: int
    rng_label: tuple[int, int]
    replies: Mapping[str, RecordedReply] = field(default_factory=dict)
    observations: Mapping[str, Observation | None] = field(default_factory=dict)
    scores: Mapping[str, Sequence[RewardResult]] = field(default_factory=dict)

    def actor(self, actor: Actor, seed: int, record: "GroupRecord | None") -> Actor:
        """The actor with the random streams of this group.

        Args:
            actor: The actor of the step that is generated.
            seed: Seed of the run.
            record: Records the values that the group receives; None without a token limit.
        """
        if record is None:
            return actor.fork(*self.rng_label)
        assert isinstance(actor, ResumableActor), "checked with the recipe"
        group_actor = actor.for_group(step_key(seed, self.first_step), record.replies)
        return group_actor.fork(*self.rng_label)

    def to_data(self) -> list[Any]:
        """The group as JSON data, which does not depend on the order in which values arrived."""
        drawn_values = self.task.key, self.task.group_size, self.task.prompt
        replays = [*map(rollout_json.to_data, self.task.replays)]
        demonstrations = [[solved.prompt, solved.answer] for solved in self.task.demonstrations]
        return [
            [*drawn_values, replays, demonstrations, dict(self.task.statistic_states)],
            self.first_step,
            self.rng_label,
            {key: reply.to_data() for key, reply in sorted(self.replies.items())},
            dict(sorted(self.observations.items())),
            scores_to_data(self.scores),
        ]

    @classmethod
    def from_data(cls, data: Any, task_by_key: Mapping[str, Task]) -> "GroupInProgress":
        """Inverse of `to_data`."""
        task_data, first_step, rng_label, replies, observations, scores = data
        key, group_size, prompt, replays, demonstrations, states = task_data
        task = replace(
            task_by_key[key],
            group_size=group_size,
            prompt=rollout_json.as_observation(prompt),
            replays=tuple(map(rollout_json.from_data, replays)),
            demonstrations=tuple(SolvedTask(*pair) for pair in demonstrations),
            statistic_states={statistic: tuple(state) for statistic, state in states.items()},
        )
        return cls(
            task,
            first_step,
            tuple(rng_label),
            {key: RecordedReply.from_data(entry) for key, entry in replies.items()},
            observations_from_data(observations),
            scores_from_data(scores),
        )


def restore_groups(data: Sequence[Any], tasks: Sequence[Task]) -> tuple[GroupInProgress, ...]:
    """Restore groups from `GroupInProgress.to_data`; `tasks` must include their tasks."""
    keys = {task_data[0] for task_data, *_ in data}
    task_by_key = {task.key: task for task in tasks if task.key in keys} if keys else {}
    return tuple(GroupInProgress.from_data(entry, task_by_key) for entry in data)


def step_key(seed: int, step: int) -> int:
    """Key of the random streams with which a step generates."""
    return derive_key(seed, "sample", step)


class GroupRecord:
    """The replies, observations and scores that a group receives while it is generated.

    Args:
        group: The group, with the values recorded in earlier steps.
        tokens_per_step: Largest number of tokens that a rollout generates in this step.
        on_change: Called when a coroutine of the group pauses or continues.
    """

    def __init__(
        self, group: GroupInProgress, tokens_per_step: int, on_change: Callable[[], None]
    ) -> None:
        self.group = group
        self.replies = ReplyRecord(group.replies, tokens_per_step, on_change)
        self.observations = dict(group.observations)
        self.scores = dict(group.scores)

    async def observation(
        self,
        rollout: Rollout,
        reply: Callable[[], Awaitable[Observation | None]],
        is_lost: Callable[[], bool] = lambda: False,
    ) -> Observation | None:
        """The recorded observation after a rollout, or else the observation that `reply` returns.

        Args:
            rollout: The rollout.
            reply: Requests the observation from the environment.
            is_lost: Whether the reply was lost. A lost reply is not recorded, so that a later step
                requests it again.
        """
        key = rollouts_digest([rollout])
        if key in self.observations:
            return self.observations[key]
        observation = await self.replies.running(reply())
        if not is_lost():
            self.observations[key] = observation
        return observation

    async def scores_or_call(
        self,
        rollouts: Sequence[Rollout],
        score: Callable[[], Awaitable[Sequence[RewardResult]]],
    ) -> Sequence[RewardResult]:
        """The recorded scores of the rollouts, or else the scores that `score` returns."""
        key = rollouts_digest(rollouts)
        if key not in self.scores:
            self.scores[key] = await score()
        return self.scores[key]

    def unfinished_group(self) -> GroupInProgress:
        """The group with the values recorded so far."""
        return replace(
            self.group,
            replies=self.replies.replies,
            observations=self.observations,
            scores=self.scores,
        )


def rollouts_digest(rollouts: Sequence[Rollout]) -> str:
    """A digest of the roles, observations and responses of rollouts: the key of recorded values."""
    content = [
        (
            rollout.role,
            [(observation, r.items, r.text, r.image) for observation, r in rollout.turns],
        )
        for rollout in rollouts
    ]
    return hashlib.blake2b(repr(content).encode(), digest_size=16).hexdigest()


def observations_from_data(data: Mapping[str, Any]) -> dict[str, Observation | None]:
    """Observations by digest, from JSON data."""
    return {
        key: None if value is None else rollout_json.as_observation(value)
        for key, value in data.items()
    }


def scores_to_data(scores: Mapping[str, Sequence[RewardResult]]) -> dict[str, Any]:
    """Scores by digest as JSON data."""
    return {key: [vars(result) for result in results] for key, results in sorted(scores.items())}


def scores_from_data(data: Mapping[str, Any]) -> dict[str, Sequence[RewardResult]]:
    """Inverse of `scores_to_data`."""
    return {key: [_reward_result(entry) for entry in entries] for key, entries in data.items()}


def _reward_result(data: Mapping[str, Any]) -> RewardResult:
    step_values = {name: tuple(values) for name, values in data["step_values"].items()}
    fields: dict[str, Any] = {**data, "step_values": step_values}
    return RewardResult(**fields)
