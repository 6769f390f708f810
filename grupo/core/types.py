"""Tasks, responses, rollouts and groups: the data of a run before it becomes a batch of tensors."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from grupo.core.group_html import group_html
from grupo.core.task_statistic import StatisticState, TaskStatistic

Message = Mapping[str, Any]  # {"role": ..., "content": ...}
Observation = str | tuple[Message, ...]  # plain text, or the messages of a chat


@dataclass(frozen=True)
class SolvedTask:
    """A task with a correct answer of the policy, as texts."""

    prompt: str
    answer: str


@dataclass(frozen=True)
class Task:
    """A prompt and everything needed to score the answers to it.

    Args:
        key: Identifies the prompt: the same prompt has the same key, whatever its source.
        prompt: The first observation of a rollout.
        reference_answer: Compared with the policy's answer by reward functions; None if unused.
        source: Name of the family or file that the task comes from.
        columns: The other columns of the task's row in its data set, for reward functions.
        location: File and line or row of the task, for messages; "" if it has none.
        group_size: Rollouts that the curriculum requests; 0 leaves the number to the sampler.
        replays: Earlier rollouts of this task that the history has kept.
        unfinished_rollouts: Rollouts of this task that its sampler left open and now continues.
        demonstrations: The most similar other tasks that the policy has solved, best first.
        extends_group: The rollouts join the group of this task that the same step has generated.
        statistic_states: States of the statistics that the sampler declares, by the statistic's
            code.
    """

    key: str
    prompt: Observation
    reference_answer: Any = None
    source: str = ""
    columns: Mapping[str, Any] = field(default_factory=dict)
    location: str = field(default="", compare=False)
    group_size: int = 0
    replays: "tuple[Rollout, ...]" = ()
    unfinished_rollouts: "tuple[Rollout, ...]" = ()
    demonstrations: tuple[SolvedTask, ...] = ()
    extends_group: bool = False
    statistic_states: Mapping[str, StatisticState] = field(default_factory=dict)

    def state(self, statistic: TaskStatistic) -> StatisticState:
        """The state of a statistic that the sampler declares, after the task's earlier groups."""
        return self.statistic_states.get(repr(statistic), statistic.initial_state)


@dataclass(frozen=True)
class Response:
    """One answer of the policy within a rollout, with the log-probability of each of its items.

    Args:
        items: Tokens, denoising steps or latent thoughts, in order.
        logp: Log-probability of each item under the distribution that it was sampled from.
        observation: The observation since the previous response, encoded as the policy read it.
        text: The response as text.
        finish_reason: Why generation stopped: "end" (end token), "stop" (a stop string) or
            "length" (the token limit).
        sampled: The response is a sample of the policy. False for three kinds of text. A recited or
            forced text has `logp` 0. A forced text that is trained on with a ratio has the `logp`
            of the policy. An answer that was chosen among several samples keeps its `logp`.
        in_loss: The response is trained on. False for a forced prefill.
        resets_context: The context starts anew with `observation`; earlier turns are not read.
        rewrites_history: The context starts anew because the chat template renders earlier answers
            otherwise than the policy generated them: the rollout forks, and `observation` is the
            whole chat. `resets_context` is True then.
        off_context: The response was sampled in another context, at an earlier step, or from
            another distribution than it is trained in. `logp` is that of the sampling.
        rng_key: Key of the random stream that the response was sampled with.
        policy_version: Training steps behind the weights that sampled the response, or its first
            part.
        later_parts: For each part but the first of a response that several steps generated: the
            index of its first item, and the training steps behind the weights that sampled it.
        image: A generated image, encoded by `grupo.storage.tensor_text`; "" for text.
        routes: The experts that a mixture of experts chose while it sampled, for each token from
            the last item of the previous response to the last item of this one, as
            `grupo.inference.routes` encodes them; "" if they are not recorded.
    """

    items: tuple[Any, ...]
    logp: tuple[float, ...]
    observation: tuple[Any, ...] = ()
    text: str = ""
    finish_reason: str = "end"
    sampled: bool = True
    in_loss: bool = True
    resets_context: bool = False
    rewrites_history: bool = False
    off_context: bool = False
    rng_key: int = 0
    policy_version: int = 0
    image: str = ""
    later_parts: tuple[tuple[int, int], ...] = ()
    routes: str = ""

    @property
    def item_versions(self) -> tuple[int, ...]:
        """Training steps behind the weights that sampled each item.

        >>> Response((5, 6, 7), (0.0,) * 3, policy_version=2, later_parts=((1, 3),)).item_versions
        (2, 3, 3)
        """
        starts = ((0, self.policy_version), *self.later_parts)
        ends = (*(start for start, _ in self.later_parts), len(self.items))
        return tuple(
            version
            for (start, version), end in zip(starts, ends, strict=True)
            for _ in range(start, end)
        )


PRUNED_BY_SAMPLER = "pruned"  # `Rollout.error` of a rollout that its sampler ended unscored


@dataclass(frozen=True)
class Seat:
    """A player's place in a game that rollouts play against one another.

    Args:
        game: Identifies the game among those of its task.
        number: The player, from 0.
        players: Number of players of the game.
    """

    game: int
    number: int
    players: int


@dataclass(frozen=True)
class Rollout:
    """One attempt at a task: its observations and responses in turn, and its reward.

    Args:
        turns: Pairs of an observation and the response that answers it.
        reward: The total reward; NaN before the rollout has been scored.
        reward_terms: The components of the reward, by name.
        step_values: Numbers of the environment, one per item of the rollout's responses, by name:
            step rewards, state ids, positions. A batch has them as the signals `step/<name>`.
        error: Why the rollout could not be scored; such a rollout has no reward.
        source: Origin of the responses: "policy", "demonstration", or the name of an expert.
        role: The policy that acts, where several are trained; "" is the first one.
        seat: The player whose attempt this is, in a game between rollouts; None in any other task.
        index: Position among the rollouts that its step generated; -1 for a rollout that has not
            been collected, or that was generated by an earlier step.
        unfinished: The sampler will continue the rollout in a later step; it is not scored yet, and
            its reward is 0.
        rejected: Of a rollout of one turn that a `CollectStage` sampled: the answers that its turn
            strategy rejected.
        notes: Texts that the turn strategy wrote for its later turns, such as the thoughts of
            `RecalledThoughts`. Neither the environment nor a loss reads them.
        id: Of a rollout that the history keeps: the `rollout_id` of the attempt; else "".
        parents: The `id` of each earlier rollout that the prompt shows, in the prompt's order.
    """

    turns: tuple[tuple[Observation, Response], ...] = ()
    reward: float = float("nan")
    reward_terms: Mapping[str, float] = field(default_factory=dict)
    step_values: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    error: str = ""
    source: str = "policy"
    role: str = ""
    seat: Seat | None = None
    index: int = -1
    unfinished: bool = False
    rejected: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    id: str = ""
    parents: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text of all responses, with the beginnings of answers that observations prefill."""
        return "".join(turn_text(observation, response) for observation, response in self.turns)

    @property
    def length(self) -> int:
        """Number of items (tokens) in all responses."""
        return sum(len(response.items) for _, response in self.turns)

    @property
    def context_length(self) -> int:
        """Number of items in all responses and observations."""
        return sum(len(response.observation) + len(response.items) for _, response in self.turns)

    @property
    def last_response(self) -> Response:
        """The last response; the rollout must have one."""
        return self.turns[-1][1]

    @property
    def truncated(self) -> bool:
        """True if the token limit ended the last response."""
        return bool(self.turns) and self.last_response.finish_reason == "length"

    @property
    def is_forked(self) -> bool:
        """True if the chat template rewrote earlier answers, so that there are several rows."""
        return any(response.rewrites_history for _, response in self.turns)

    @property
    def contexts(self) -> "tuple[Rollout, ...]":
        """The turns of each context as a rollout of their own; each becomes a row of a batch."""
        starts = [i for i, (_, response) in enumerate(self.turns) if response.resets_context and i]
        bounds = pairwise([0, *starts, len(self.turns)])
        return tuple(replace(self, turns=self.turns[a:b]) for a, b in bounds)

    def append_turn(self, observation: Observation, response: Response) -> "Rollout":
        """The same rollout with one more turn."""
        return replace(self, turns=(*self.turns, (observation, response)))

    def with_reward_terms(self, terms: Mapping[str, float]) -> "Rollout":
        """The same rollout with further reward terms, which do not change its reward."""
        return replace(self, reward_terms={**self.reward_terms, **terms})

    def with_step_values(self, values: Mapping[str, tuple[float, ...]]) -> "Rollout":
        """The same rollout with further step values, one number per item."""
        return replace(self, step_values={**self.step_values, **values})


def prefill_text(observation: Observation) -> str:
    """The beginning of the answer that an observation prefills: its last message is the policy's.

    >>> prefill_text(({"role": "user", "content": "2 +"}, {"role": "assistant", "content": "4"}))
    '4'
    >>> prefill_text("2 + 2 =")
    ''
    """
    last = {} if isinstance(observation, str) or not observation else observation[-1]
    content = last.get("content") if last.get("role") == "assistant" else ""
    parts = content if isinstance(content, list | tuple) else ({"text": content or ""},)
    return "".join(str(part.get("text", "")) for part in parts)


def turn_text(observation: Observation, response: Response) -> str:
    """The answer of a turn: its prefilled beginning and the response's text.

    If the sampler restarts the context, the response reads the observation once more. An earlier
    turn has the prefilled beginning already, and it is left out here.
    """
    is_again = response.resets_context and not response.rewrites_history
    prefill = "" if is_again else prefill_text(observation)
    return prefill + response.text


@dataclass(frozen=True)
class RewardResult:
    """The score of one rollout.

    Args:
        reward: The total reward; NaN if scoring failed.
        reward_terms: The components of the reward, by name.
        step_values: One number per item of the rollout's responses, by name; the signals
            `step/<name>` of a batch.
        error: Why scoring failed; "" if it succeeded.
    """

    reward: float = float("nan")
    reward_terms: Mapping[str, float] = field(default_factory=dict)
    step_values: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True)
class Group:
    """Rollouts of one task, which are compared with one another."""

    task: Task
    rollouts: tuple[Rollout, ...]

    @property
    def rewards(self) -> tuple[float, ...]:
        """The reward of each rollout."""
        return tuple(r.reward for r in self.rollouts)

    @property
    def has_reward_variance(self) -> bool:
        """True if the rewards differ, so that a group-relative advantage is not 0 everywhere."""
        return len(set(self.rewards)) > 1

    def with_rollouts(self, rollouts: Iterable[Rollout]) -> "Group":
        """The task of this group with other rollouts."""
        return replace(self, rollouts=tuple(rollouts))

    def _repr_html_(self) -> str:
        """The group in a notebook."""
        return group_html(self)
