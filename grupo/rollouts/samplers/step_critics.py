"""Critics of a search tree: they value the steps that may follow a state, before any is tried."""

import re
from collections.abc import Sequence
from typing import Protocol

from grupo.core.component import component
from grupo.core.forms import check_form, fill
from grupo.core.interfaces import Actor
from grupo.core.prompt_text import prompt_as_text
from grupo.core.protocols import implemented_in
from grupo.core.types import Observation, Response, Rollout
from grupo.core.usage import add_external_usage

__all__ = ["SelfRanking", "StepCritic", "no_critic"]

ASK = "{task}\n{history}\nPossible next steps:\n{steps}\nReply with the number of the best one."


@implemented_in("grupo.rollouts.samplers.step_critics")
class StepCritic(Protocol):
    """Values the steps that may follow a state."""

    async def __call__(
        self, actor: Actor, rollout: Rollout, observation: Observation, steps: Sequence[Response], /
    ) -> Sequence[float]:
        """A value of each step, in [0, 1].

        Args:
            actor: The policy.
            rollout: The rollout before the steps.
            observation: The observation that they answer; "" continues the last response.
            steps: The different steps.
        """
        ...


async def no_critic(
    actor: Actor, rollout: Rollout, observation: Observation, steps: Sequence[Response]
) -> Sequence[float]:
    """The value 0 for each step: outcomes alone value them."""
    return [0.0] * len(steps)


@component
class SelfRanking:
    """The policy names the best step, then the best of the others: values 1, 1/2, 1/3, ...

    It replies in contexts of its own. Steps among which a reply names none share their rank, and
    the usage `critic/unparsed` counts the reply; `critic/replies` counts all. Agent Q, Putta et
    al., 2024, arXiv:2408.07199.

    Args:
        ask: Prompt with {task}, {history}, the steps so far with what was observed, and {steps},
            the numbered candidates.

    Raises:
        ConfigError: The form lacks a placeholder, or has one without a value.
    """

    ask: str = ASK

    def __post_init__(self) -> None:
        check_form("SelfRanking.ask", self.ask, ("task", "history", "steps"))

    async def __call__(
        self, actor: Actor, rollout: Rollout, observation: Observation, steps: Sequence[Response]
    ) -> Sequence[float]:
        ranks = dict.fromkeys(range(len(steps)), 0)
        remaining = list(ranks)
        for rank in range(len(steps) - 1):
            texts = [steps[i].text.strip() for i in remaining]
            prompt = fill(
                self.ask, {**_state_texts(rollout, observation), "steps": numbered(texts)}
            )
            reply = await actor.fork("critic", rank)(Rollout(role=rollout.role), prompt)
            named = named_number(reply.text, len(remaining))
            add_external_usage({"critic/replies": 1.0, "critic/unparsed": float(not named)})
            if not named:
                break
            best = remaining.pop(named - 1)
            ranks[best] = rank
            ranks.update(dict.fromkeys(remaining, rank + 1))
        return [1 / (1 + rank) for rank in ranks.values()]


def numbered(texts: Sequence[str]) -> str:
    """The texts, one a line, with their numbers from 1.

    >>> numbered(["left", "right"])
    '1. left\\n2. right'
    """
    return "\n".join(f"{i}. {text}" for i, text in enumerate(texts, 1))


def named_number(reply: str, count: int) -> int:
    """The first number in a reply, if it is 1 to `count`; else 0.

    >>> named_number("Number 2.", 3), named_number("4", 3), named_number("left", 3)
    (2, 0, 0)
    """
    match = re.search(r"\d+", reply)
    return int(match[0]) if match and len(match[0]) < 9 and 1 <= int(match[0]) <= count else 0


def _state_texts(rollout: Rollout, observation: Observation) -> dict[str, str]:
    """The texts of a state: the task, and what was answered and observed after it."""
    first = rollout.turns[0][0] if rollout.turns else observation
    parts = [part for shown, response in rollout.turns for part in (shown, response.text)][1:]
    later = [*parts, observation] if rollout.turns else []
    history = "\n".join(text.strip() for part in later if (text := prompt_as_text(part)).strip())
    return {"task": prompt_as_text(first), "history": history}
