"""Forced starts: the first answer of a rollout begins with a given text."""

from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, TurnStrategy, single_response
from grupo.core.types import Observation, Rollout
from grupo.util.errors import ConfigError


@component
class ForcedStart:
    """Forces the answer of a rollout's first turn to begin with `text`; later turns are unchanged.

    If the text is trained on, its old log-probabilities are those of the policy, as if the policy
    had sampled it. Its ratio is then pi / pi_old.

    Args:
        text: The beginning of the answer; "" forces nothing.
        train_text: Whether the tokens of the text are trained on.
        inner: Generates the rest of the turn.

    Raises:
        ConfigError: The tokenizer cannot represent the text. Raised at the first turn, not at
            construction.
    """

    text: str
    train_text: bool = True
    inner: TurnStrategy = single_response

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        if rollout.turns or not self.text:
            return await self.inner(actor, rollout, observation)
        started = await append_forced(actor, rollout, observation, self.text)
        if self.train_text:
            started = await with_trained_text(actor, started)
        return await self.inner(actor, started, "")


async def append_forced(
    actor: Actor, rollout: Rollout, observation: Observation, text: str
) -> Rollout:
    """The rollout with a forced text as its last response, which is not trained on.

    Args:
        actor: Encodes the text.
        rollout: The rollout so far.
        observation: The observation that the text answers; "" continues the last response.
        text: The text.

    Raises:
        ConfigError: The tokenizer cannot represent the text.
    """
    forced = await actor.prefill_forced(rollout, observation, text)
    started = rollout.append_turn(observation, forced)
    _check_tokens(actor, started, text)
    return started


async def with_trained_text(actor: Actor, started: Rollout) -> Rollout:
    """The rollout with its last response, a forced text, trained on as if the policy sampled it."""
    *turns, (observation, forced) = started.turns
    # `logprobs` returns the log-probabilities of the last response alone
    logp = (await actor.logprobs(started)).logp
    trained = replace(forced, in_loss=True, logp=logp)
    return replace(started, turns=(*turns, (observation, trained)))


def _check_tokens(actor: Actor, started: Rollout, text: str) -> None:
    """Raise if the forced tokens decode to another text. Special tokens may decode to no text."""
    forced = started.last_response
    # truncation decodes the tokens that it keeps, and here it keeps all of them
    decoded = actor.truncate(started, len(forced.items)).last_response.text
    if not forced.items or (decoded.strip() and decoded.split() != text.split()):
        raise ConfigError(
            f"sampler: the forced text {text[:60]!r} becomes {decoded[:60]!r} in the policy's"
            " tokens. Allowed: a text that the tokenizer can represent."
        )
