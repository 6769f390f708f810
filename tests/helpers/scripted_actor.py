"""An actor that generates text from a script, letter by letter, and an environment of one turn."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from grupo.core.interfaces import TokenLogprobs
from grupo.core.types import Response, RewardResult, Rollout, Task
from grupo.models.text_choice import draw_text
from grupo.util.rng import derive_key, make_rng

TASK = Task("t", "Q")
END = "."


@dataclass
class Once:
    """Environment of one turn; the reward of an answer is `reward_fn` of its text."""

    reward_fn: Callable[[str], float] = len

    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        return [RewardResult(reward=float(self.reward_fn(r.text))) for r in rollouts]


@dataclass(frozen=True)
class Script:
    """Actor that generates the letter `next_letter(context, key)` until it is the end letter.

    `context` is the text of the current context; every call is appended to `log` as
    (context, generated text).
    """

    next_letter: Callable[[str, int], str]
    log: list
    key: int = 0
    stop_strings: tuple = ()
    max_new_tokens: int = 1000

    async def __call__(self, rollout, observation):
        turns = rollout.contexts[-1].turns
        before = "".join("".join((*a.observation, *a.items)) for _, a in turns)
        return self._generate(before, observation)

    async def restart_context(self, rollout, observation, suffix_tokens=0, prefix_tokens=0):
        text = "".join(letter for _, response in rollout.turns for letter in response.items)
        suffix = text[max(prefix_tokens, len(text) - suffix_tokens) :]
        response = self._generate("", observation + text[:prefix_tokens] + suffix)
        return replace(response, resets_context=True)

    async def append_unsampled(self, rollout, observation, text):
        return self._unsampled_response(observation, text)

    async def prefill_forced(self, rollout, observation, text):
        return self._unsampled_response(observation, text, in_loss=False)

    async def choose(self, rollout, observation, probabilities):
        text, _, logp = draw_text(probabilities, tuple, self.rng("choose"))
        drawn = {"logp": logp, "sampled": True, "off_context": True, "rng_key": self.key}
        return replace(self._unsampled_response(observation, text), **drawn)

    async def logprobs(self, rollout):
        return TokenLogprobs((-2.0,) * len(rollout.last_response.items))

    def truncate(self, rollout, num_items):
        *before, (observation, response) = rollout.turns
        items = response.items[:num_items]
        shortened = replace(
            response,
            items=items,
            logp=response.logp[:num_items],
            text="".join(items),
            finish_reason="length",
        )
        return Rollout((*before, (observation, shortened)))

    def fork(self, *label):
        return replace(self, key=derive_key(self.key, *label))

    def rng(self, *label):
        return make_rng(self.key, *label)

    def with_sampling(self, temperature=1.0, top_k=0):
        return self

    def with_stop(self, *stop_strings, max_new_tokens=0):
        return replace(self, stop_strings=stop_strings, max_new_tokens=max_new_tokens or 1000)

    def _unsampled_response(self, observation, text, **fields):
        logp = (0.0,) * len(text)
        return Response(tuple(text), logp, tuple(observation), text, sampled=False, **fields)

    def _generate(self, before, observation):
        text, finish_reason = "", "length"
        while len(text) < self.max_new_tokens and finish_reason == "length":
            text += self.next_letter(before + observation + text, self.key)
            if text[-1:] == END:
                finish_reason = "end"
            if any(text.endswith(stop) for stop in self.stop_strings):
                finish_reason = "stop"
        self.log.append((before + observation, text))
        logp = (-1.0,) * len(text)
        return Response(
            tuple(text), logp, tuple(observation), text, finish_reason, rng_key=self.key
        )


def script(next_letter) -> Script:
    """A scripted actor with an empty log."""
    return Script(next_letter, [])


def dice(context: str, key: int) -> str:
    """A pseudo-random letter of the stream at this position; one in eight is the end letter."""
    digest = hashlib.blake2b(f"{key}/{len(context)}".encode(), digest_size=1).digest()[0]
    return END if digest % 8 == 0 else "abcd"[digest // 8 % 4]


def texts(group) -> list[str]:
    return [rollout.text for rollout in group.rollouts]


def streams(rollout: Rollout) -> list[int]:
    """Random stream of each sampled response."""
    return [response.rng_key for _, response in rollout.turns if response.sampled]
