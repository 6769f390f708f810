"""The interfaces of a rollout: an actor generates, an environment answers and scores.

`Actor` is a sampler's handle on the policy, `Env` is the environment, and a `TurnStrategy` decides
how the policy answers one observation. `run_rollout` plays one rollout with them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import NamedTuple, Protocol, runtime_checkable

from grupo.core.answer_work import AnswerLimitError, limit_answer
from grupo.core.batch import Batch, Signals
from grupo.core.component import to_code
from grupo.core.decoding import Decoding
from grupo.core.demonstration import Demonstration
from grupo.core.protocols import implemented_in
from grupo.core.types import Group, Observation, Response, RewardResult, Rollout, Task
from grupo.util.errors import ConfigError


class TokenLogprobs(NamedTuple):
    """Log-probability and entropy of each item of a response, in nats.

    `max_entropy` is the largest entropy possible: the log of the vocabulary's size.
    """

    logp: tuple[float, ...] = ()
    entropy: tuple[float, ...] = ()
    max_entropy: float = 0.0


class Actor(Protocol):
    """A sampler's handle on the policy: it generates, scores, and derives random streams.

    An actor is immutable. `fork`, `with_sampling` and `with_stop` return another one. A fork has
    another random stream. The context of a response is not in the actor, but in the rollout that a
    call gets. `Rollout.role` selects the policy, also in an empty `Rollout(role="teacher")`. The
    observation "" continues the last response.
    """

    @property
    def generated_tokens(self) -> Mapping[str, int]:
        """Number of items generated so far through this actor and all its forks, by role.

        Every item that the inference engine generated counts once, also if its rollout failed,
        was cut, or was not returned by the sampler. A call of `next_tokens` counts as one item: it
        costs the engine one step of decoding.
        """
        ...

    @property
    def read_tokens(self) -> Mapping[str, int]:
        """Number of tokens that the engine read so far, by role: those of prompts and contexts.

        A beginning that is in the engine's prefix cache, or that prompts of one batch share, is
        read once. Text to score, and the rollout before a head's prediction, are read as well. A
        generated token is read only if a later request begins with it.
        """
        ...

    async def __call__(self, rollout: Rollout, observation: Observation) -> Response:
        """Generate the next response of `rollout`, in answer to `observation`."""
        ...

    async def restart_context(
        self,
        rollout: Rollout,
        observation: Observation,
        suffix_tokens: int = 0,
        prefix_tokens: int = 0,
    ) -> Response:
        """Generate from a new context: `observation` and a part of the items generated so far.

        Args:
            rollout: The rollout so far.
            observation: The beginning of the new context.
            suffix_tokens: Number of last items that the context keeps.
            prefix_tokens: Number of first items that the context keeps; none is kept twice.
        """
        ...

    async def append_unsampled(
        self, rollout: Rollout, observation: Observation, text: str
    ) -> Response:
        """The response of a policy that answers `text`: trained on, but not sampled."""
        ...

    def demonstrate(self, demonstration: Demonstration) -> Rollout:
        """The rollout of a policy that gives the answers of a demonstration; none is sampled.

        Equal demonstrations may share a rollout, which is independent of the random stream.
        """
        ...

    async def prefill_forced(
        self, rollout: Rollout, observation: Observation, text: str
    ) -> Response:
        """A forced beginning `text` of the next response: neither sampled nor trained on."""
        ...

    async def choose(
        self, rollout: Rollout, observation: Observation, probabilities: Mapping[str, float]
    ) -> Response:
        """Draw one of several given texts as the beginning of the next response, and train on it.

        The response is `sampled` from the given distribution, and `off_context`: its `logp` belongs
        to that distribution, and the ratio of the whole response is pi(text) / probability. The
        log-probability of a token is that of the given distribution after the text's tokens before
        it. The engine generates nothing, so nothing is counted as generated.

        Args:
            rollout: The rollout so far.
            observation: The observation that the response answers.
            probabilities: Probability of each text, in the order in which one is drawn.

        Raises:
            ConfigError: The sum of the probabilities is not 1, or a text is the beginning of
                another.
        """
        ...

    async def logprobs(self, rollout: Rollout) -> TokenLogprobs:
        """Log-probabilities and entropies of the last response in its context; generates nothing.

        Items beyond the model's context length are not scored.
        """
        ...

    async def next_tokens(
        self, rollout: Rollout, observation: Observation, k: int
    ) -> Sequence[Response]:
        """The `k` likeliest next tokens, likeliest first, each as a response of one item.

        `logp` of a response is the log-probability of its token in nats under the sampling
        temperature, without top_k, top_p and min_p, over the whole vocabulary. `finish_reason` is
        "end" or "stop" if the response ends with the token, otherwise "length". To continue after a
        token, append its response to the rollout as a turn, and use the observation "".

        The result is empty if the context is full, or if the open response has its largest length.
        """
        ...

    async def decode(
        self, rollout: Rollout, observation: Observation, decoding: Decoding
    ) -> Sequence[Response]:
        """The responses that the policy generates while the model is changed as `decoding` states.

        A `LockStep` has a response for each continuation, without the given tokens of its start;
        each answers `observation`. Other decodings have one response. Responses are `off_context`:
        `logp` is that of the changed model. A context
        without room has one empty response. A gradient step is counted as a generated token.

        Raises:
            ConfigError: The policy is no causal language model that generates in this process, or
                the model lacks what the decoding needs.
        """
        ...

    def truncate(self, rollout: Rollout, num_items: int) -> Rollout:
        """The rollout with its last response cut after `num_items` items."""
        ...

    def with_prompt(self, rollout: Rollout, prompt: Observation) -> Rollout:
        """The rollout with another prompt; its responses are marked as `off_context`."""
        ...

    async def predict_head(self, rollout: Rollout, head: str) -> float:
        """The output of the auxiliary head `head` in the state after `rollout`."""
        ...

    def fork(self, *label: object) -> "Actor":
        """The same policy with a random stream of its own, derived from `label`."""
        ...

    def rng(self, *label: object) -> Random:
        """A random generator for the sampler's own choices, derived from `label`."""
        ...

    def with_sampling(self, temperature: float = 1.0, top_k: int = 0) -> "Actor":
        """The same policy with other sampling parameters.

        Args:
            temperature: Factor on the policy's own temperature.
            top_k: Sample among the `top_k` likeliest tokens; 1 is greedy, 0 leaves it as it is.
        """
        ...

    def with_stop(self, *stop_strings: str, max_new_tokens: int = 0) -> "Actor":
        """The same policy with further stop conditions for the next response.

        Args:
            stop_strings: Generation stops after any of them; earlier text does not count.
            max_new_tokens: Largest number of tokens of the next response; 0 sets no limit.
        """
        ...


class SignalModel(Protocol):
    """A model that computes signals of a batch: the policy, a reference policy, a teacher."""

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """Signals of every action by name, each (N, T), 0 where masked."""
        ...


class Env(Protocol):
    """The environment of a task: it returns observations and scores finished rollouts.

    An `Env` in a recipe has no state: it computes observations and rewards from its arguments
    alone. The recipe of an environment with state, such as sessions, has a `StatefulEnv` instead.
    """

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        """The next observation; None ends the rollout. The first one is the prompt."""
        ...

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[RewardResult]:
        """The reward of each rollout of a group, in the same order."""
        ...


@runtime_checkable
class StatefulEnv(Protocol):
    """The description of an environment whose rollouts need state, such as sessions of a game.

    A recipe is data: it is compared, printed and stored, and serves many event loops. The state
    therefore belongs to the object that `open` returns, which serves one step or one evaluation.
    """

    def open(self) -> Env:
        """An environment with new state, for use in one event loop."""
        ...


@runtime_checkable
class ClosableSessions(Protocol):
    """An environment in use whose sessions can be closed before their rollouts are over."""

    def close(self) -> None:
        """Close all sessions."""
        ...


@runtime_checkable
class EnvWithLostReplies(Protocol):
    """An environment in use whose replies may be lost, with the process that computes them."""

    def lost_reply_cause(self, task: Task, rollout: Rollout) -> str:
        """Why a reply to the rollout, or to a beginning of it, was lost; "" if none was.

        A rollout whose reply is lost ends, and it is scored as failed. In a group that a later step
        continues, the later step requests the reply again instead.
        """
        ...


EnvSpec = Env | StatefulEnv  # an environment as a recipe names it


@runtime_checkable
class PlacedEnv(Protocol):
    """An environment whose replies and scores are those of another one, in other processes."""

    def inner_env(self) -> EnvSpec:
        """The other environment."""
        ...


def env_without_placement(env: EnvSpec) -> EnvSpec:
    """The environment that replies and scores, wherever it is placed."""
    return env.inner_env() if isinstance(env, PlacedEnv) else env


def open_env(env: EnvSpec) -> Env:
    """The environment for one step or one evaluation; an `Env` without state is returned as is."""
    return env.open() if isinstance(env, StatefulEnv) else env


@implemented_in("grupo.rollouts.turns")
class TurnStrategy(Protocol):
    """How the policy answers one observation: with one response or several."""

    async def __call__(
        self, actor: Actor, rollout: Rollout, observation: Observation, /
    ) -> Rollout:
        """The rollout after the turn."""
        ...


async def single_response(actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
    """The default turn strategy: one response, generated up to its stop condition."""
    return rollout.append_turn(observation, await actor(rollout, observation))


async def run_rollout(
    task: Task,
    env: Env,
    actor: Actor,
    rollout: Rollout = Rollout(),
    turn_strategy: TurnStrategy = single_response,
) -> Rollout:
    """Continue `rollout` until the environment ends it; the result is not scored yet.

    If the turn strategy exceeds a limit of the work on one answer, the rollout ends with an `error`
    and is not scored.

    Raises:
        ConfigError: The turn strategy returned a rollout without a new response.
    """
    while (observation := await env.reply(task, rollout)) is not None:
        num_turns = len(rollout.turns)
        try:
            with limit_answer():
                rollout = await turn_strategy(actor, rollout, observation)
        except AnswerLimitError as error:
            return replace(rollout, error=f"turn_strategy: {to_code(turn_strategy)} {error}")
        if len(rollout.turns) <= num_turns:  # the environment would reply the same for ever
            raise ConfigError(
                f"turn_strategy: {to_code(turn_strategy)} returned no response to an observation."
                " Allowed: a rollout with at least one turn more."
            )
    return rollout


async def initial_observation(task: Task, env: Env) -> Observation:
    """The environment's first observation of a task: the prompt."""
    observation = await env.reply(task, Rollout())
    assert observation is not None, "an environment must return a first observation"
    return observation


async def score_group(task: Task, env: Env, rollouts: Sequence[Rollout]) -> Group:
    """Score the rollouts of a task together; a failure is recorded in a rollout's `error`.

    A rollout that already has an error is not scored.
    """
    finished = [rollout for rollout in rollouts if not rollout.error]
    results = await env.score(task, finished) if finished else ()
    scored = iter(
        [
            replace(
                rollout,
                reward=result.reward,
                reward_terms=result.reward_terms,
                step_values=result.step_values,
                error=result.error,
            )
            for rollout, result in zip(finished, results, strict=True)
        ]
    )
    return Group(task, tuple(rollout if rollout.error else next(scored) for rollout in rollouts))
