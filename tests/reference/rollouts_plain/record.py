"""The form of a reference: trained rollouts and calls of a scripted policy, and the table of all.

A token is a letter. The wording of a prompt is an argument of the references, which the test takes
from the method: the papers' own wording is not compared, but what a prompt holds and where is.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any


@dataclass(frozen=True)
class Part:
    """A part of a response, or an observation between two turns.

    Args:
        text: Its letters.
        trained: The loss includes it.
        sampled: The policy sampled it. False for forced, recited and observed texts.
        moved: The policy sampled it behind another prompt than the one it is trained behind, or
            from another distribution, or at an earlier step.
    """

    text: str
    trained: bool = True
    sampled: bool = True
    moved: bool = False


def forced(text: str, *, trained: bool = False) -> Part:
    """A text that the policy did not sample."""
    return Part(text, trained=trained, sampled=False)


def merged(parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts, neighbours of one kind joined, and no empty ones."""
    kinds = groupby((p for p in parts if p.text), lambda p: (p.trained, p.sampled, p.moved))
    return tuple(Part("".join(p.text for p in run), *kind) for kind, run in kinds)


@dataclass(frozen=True)
class Trained:
    """A rollout of the group, as it is trained.

    Args:
        prompt: The prompt that it is trained behind.
        parts: The texts behind the prompt, in order.
        reward: Its reward; None where the reference states none.
        terms: Reward terms that the sampler adds.
        source: "policy", or the origin of another rollout; compared only if it is not "".
        baseline: The rewards that the others are compared with include its own.
        finished: The policy ended it; not compared.
    """

    prompt: str
    parts: tuple[Part, ...]
    reward: float | None
    terms: Mapping[str, float] = field(default_factory=dict)
    source: str = ""
    baseline: bool = True
    finished: bool = True

    @property
    def text(self) -> str:
        """The text behind the prompt."""
        return "".join(part.text for part in self.parts)

    def with_terms(self, **terms: float) -> "Trained":
        """The same rollout with further reward terms."""
        return replace(self, terms={**self.terms, **terms})


@dataclass(frozen=True)
class Question:
    """A task: its prompt, the reference answer, and other columns."""

    prompt: str
    answer: str = ""
    columns: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Generated:
    """A text of the policy, and why it stopped: "end", "stop" or "length"."""

    text: str
    reason: str = "end"


Answers = Callable[[str, int], str]  # text of a context, number of earlier calls with that context


@dataclass
class Policy:
    """A scripted policy.

    Args:
        answers: The whole text that follows a context.
        limit: Most letters of a text where a call sets no limit.
        calls: The contexts that it has generated from, in order.
    """

    answers: Answers
    limit: int = 10_000
    calls: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)

    def __call__(self, context: str, limit: int = 0, stops: Sequence[str] = ()) -> Generated:
        """The text that follows, up to a stop string, and at most `limit` letters.

        The end of a text takes the place of a letter. A limit of 0 is that of the policy.
        """
        limit = limit or self.limit
        text = self.answers(context, self.seen[context])
        self.seen[context] += 1
        self.calls.append(context)
        ends = [text.find(stop) + len(stop) for stop in stops if stop in text]
        if ends and min(ends) <= limit:
            return Generated(text[: min(ends)], "stop")
        return Generated(text) if len(text) < limit else Generated(text[:limit], "length")


Reward = Callable[[str], float]  # of the text behind the prompt


def sample(prompt: str, policy: Policy, reward: Reward, count: int) -> list[Trained]:
    """`count` independent answers, each trained behind the prompt that it was generated behind."""
    answers = [policy(prompt) for _ in range(count)]
    return [
        Trained(prompt, merged([Part(a.text)]), reward(a.text), finished=a.reason != "length")
        for a in answers
    ]


def move(rollout: Trained, prompt: str) -> Trained:
    """The rollout behind another prompt than the one that it was sampled behind."""
    return replace(
        rollout, prompt=prompt, parts=tuple(replace(p, moved=True) for p in rollout.parts)
    )


def solved(rollouts: Sequence[Trained]) -> bool:
    """Whether one of the rollouts is correct."""
    return any((rollout.reward or 0.0) > 0 for rollout in rollouts)


@dataclass(frozen=True)
class Reference:
    """A reference: `run(question, policy, reward, **wording)` returns the trained rollouts.

    Args:
        run: The function.
        source: What it was written from.
    """

    run: Callable[..., list[Trained]]
    source: str


REFERENCES: dict[str, Reference] = {}


def reference(name: str, source: str) -> Callable[[Callable[..., list[Trained]]], Any]:
    """Enter a function as the reference of a method; several methods may share one."""

    def enter(run: Callable[..., list[Trained]]) -> Callable[..., list[Trained]]:
        other = REFERENCES.get(name)  # a file may be imported under two names
        assert not other or other.run.__code__.co_filename == run.__code__.co_filename, name
        REFERENCES[name] = Reference(run, source)
        return run

    return enter
