"""A policy that says what a script has, letter by letter, and a world that asks once."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from grupo.core.rng import derive_key, make_rng
from grupo.core.types import Action, RewardResult, Rollout, Task

TASK = Task("t", "Q")
END = "."


@dataclass
class Once:
    """One question; an answer is worth what `hint_value` says of its text."""

    worth: Callable[[str], float] = len

    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        return [RewardResult(reward=float(self.hint_value(r.text))) for r in rollouts]


@dataclass(frozen=True)
class Script:
    """Says the letter that `says(read, key)` names next, until it names the end.

    `read` is all it reads: what the world said and what was said since its context began.
    """

    says: Callable[[str, int], str]
    log: list
    key: int = 0
    stop: tuple = ()
    limit: int = 1000

    async def __call__(self, rollout, seen):
        before = "".join("".join((*a.seen, *a.parts)) for _, a in rollout.rows[-1].turns)
        return self._said(before, seen)

    async def anew(self, rollout, seen, carried=0, head=0):
        said = "".join(x for _, a in rollout.turns for x in a.parts)
        kept = said[:head] + said[max(head, len(said) - carried) :]
        return replace(self._said("", seen + kept), resets_context=True)

    async def force(self, rollout, seen, text):
        return self._unsampled_action(seen, text, learned=False)

    def cut(self, rollout, parts):
        *before, (seen, action) = rollout.turns
        kept = action.parts[:parts]
        short = replace(
            action, items=kept, logp=action.logp[:parts], text="".join(kept), finish_reason="length"
        )
        return Rollout((*before, (seen, short)))

    def fork(self, *label):
        return replace(self, key=derive_key(self.key, *label))

    def chance(self, *label):
        return make_rng(self.key, *label)

    def at(self, temperature=1.0, top_k=0):
        return self

    def until(self, *stop, limit=0):
        return replace(self, stop_strings=stop, limit=limit or 1000)

    def _given(self, seen, text, **more):
        return Action(tuple(text), (0.0,) * len(text), tuple(seen), text, sampled=False, **more)

    def _said(self, before, seen):
        said, why = "", "length"
        while len(said) < self.limit and why == "length":
            said += self.description(before + seen + said, self.key)
            why = "end" if said[-1:] == END else why
            why = "stop" if any(said.endswith(text) for text in self.stop) else why
        self.log.append((before + seen, said))
        parts, logp = tuple(said), (-1.0,) * len(said)
        return Action(parts, logp, tuple(seen), said, why, rng_key=self.key)


def script(says) -> Script:
    """One that has said nothing yet."""
    return Script(says, [])


def dice(read: str, key: int) -> str:
    """A letter by the stream and the place; about one in eight ends it all."""
    drawn = hashlib.blake2b(f"{key}/{len(read)}".encode(), digest_size=1).digest()[0]
    return END if drawn % 8 == 0 else "abcd"[drawn // 8 % 4]


def texts(group) -> list[str]:
    return [rollout.text for rollout in group.rollouts]


def streams(rollout: Rollout) -> list[int]:
    return [action.rng_key for _, action in rollout.turns if action.sampled]
