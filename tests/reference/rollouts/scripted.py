"""A scripted policy as the actor of a sampler, an environment with a rule, and their group's rows.

The tokens are letters, and an end token that has no text.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from grupo.core.interfaces import TokenLogprobs
from grupo.core.types import Group, Response, RewardResult, Rollout, Task
from grupo.models.text_choice import draw_text
from grupo.util.rng import derive_key, make_rng
from tests.reference.rollouts_plain.record import Part, Policy, Trained, forced, merged

END = "<end>"


def observation_text(observation) -> str:
    """The text of an observation, of messages the text of all."""
    if isinstance(observation, str):
        return observation
    return "".join(message["content"] for message in observation)


def shown_letters(items) -> str:
    """The text of items, without end tokens."""
    return "".join(item for item in items if item != END)


@dataclass(frozen=True)
class Model:
    """Values that a scripted policy computes besides its texts.

    Args:
        logp: Log-probability of a letter behind a context.
        entropy: Entropy of a response, in units of the largest one.
        greedy: The greedy text behind a context.
        head: Output of an auxiliary head behind a context.
        temperatures: Factors on the temperature that were requested, in order of the calls.
    """

    logp: Callable[[str, str], float] = lambda context, letter: -1.0
    entropy: Callable[[str], float] = lambda text: 0.0
    greedy: Callable[[str], str] = lambda context: ""
    head: Callable[[str], float] = lambda context: 0.0
    temperatures: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class ScriptedActor:
    """An actor that generates the texts of a scripted policy."""

    policy: Policy
    model: Model = Model()
    key: int = 0
    stops: tuple[str, ...] = ()
    limit: int = 0
    greedy: bool = False
    temperature: float = 1.0

    async def __call__(self, rollout, observation):
        turns = rollout.contexts[-1].turns if rollout.turns else ()
        before = "".join(shown_letters((*r.observation, *r.items)) for _, r in turns)
        return self._generate(before, observation_text(observation))

    async def restart_context(self, rollout, observation, suffix_tokens=0, prefix_tokens=0):
        items = [item for _, response in rollout.turns for item in response.items]
        kept = items[:prefix_tokens] + items[max(prefix_tokens, len(items) - suffix_tokens) :]
        response = self._generate("", observation_text(observation) + shown_letters(kept))
        return replace(response, resets_context=True)

    async def append_unsampled(self, rollout, observation, text):
        return self._given(observation, text)

    async def prefill_forced(self, rollout, observation, text):
        return self._given(observation, text, in_loss=False)

    async def choose(self, rollout, observation, probabilities):
        text, _, logp = draw_text(probabilities, tuple, self.rng("choose"))
        return replace(self._given(observation, text), logp=logp, sampled=True, off_context=True)

    def demonstrate(self, demonstration):
        rollout = Rollout(source="demonstration")
        for observation, answer in demonstration.turns:
            text = answer if isinstance(answer, str) else answer["content"]
            rollout = rollout.append_turn(observation, self._given(observation, text))
        return rollout

    async def logprobs(self, rollout):
        *before, (_, last) = rollout.turns
        context = "".join(shown_letters((*r.observation, *r.items)) for _, r in before)
        context += shown_letters(last.observation)
        logp = []
        for item in last.items:
            logp.append(self.model.logp(context, item))
            context += shown_letters([item])
        entropy = self.model.entropy(last.text) / max(1, len(last.items))
        return TokenLogprobs(tuple(logp), (entropy,) * len(last.items), 1.0)

    async def predict_head(self, rollout, head):
        responses = [response for _, response in rollout.turns]
        return self.model.head(
            "".join(shown_letters((*r.observation, *r.items)) for r in responses)
        )

    def truncate(self, rollout, num_items):
        *before, (observation, last) = rollout.turns
        if num_items >= len(last.items):
            return rollout
        items = last.items[:num_items]
        cut = replace(
            last,
            items=items,
            logp=last.logp[:num_items],
            text=shown_letters(items),
            finish_reason="length",
        )
        return replace(rollout, turns=(*before, (observation, cut)))

    def with_prompt(self, rollout, prompt):
        first, *later = rollout.turns
        turns = [(prompt, replace(first[1], observation=tuple(prompt))), *later]
        moved = [(shown, replace(response, off_context=True)) for shown, response in turns]
        return replace(rollout, turns=tuple(moved))

    def fork(self, *label):
        return replace(self, key=derive_key(self.key, *label))

    def rng(self, *label) -> Random:
        return make_rng(self.key, *label)

    def with_sampling(self, temperature=1.0, top_k=0):
        return replace(self, temperature=temperature, greedy=top_k == 1)

    def with_stop(self, *stop_strings, max_new_tokens=0):
        return replace(self, stops=stop_strings, limit=max_new_tokens)

    def _given(self, observation, text, **fields):
        items, shown = tuple(text), tuple(observation_text(observation))
        return Response(items, (0.0,) * len(text), shown, text, sampled=False, **fields)

    def _generate(self, before, observation):
        if self.greedy:
            text, reason = self.model.greedy(before + observation), "end"
        else:
            generated = self.policy(before + observation, self.limit, self.stops)
            text, reason = generated.text, generated.reason
            self.model.temperatures.append(self.temperature)
        items = (*text, END) if reason == "end" else tuple(text)
        context, logp = before + observation, []
        for item in items:
            logp.append(-0.01 if item == END else self.model.logp(context, item))
            context += shown_letters([item])
        return Response(items, tuple(logp), tuple(observation), text, reason, rng_key=self.key)


def text_behind(rollout: Rollout) -> str:
    """The text behind the prompt, with the observations between turns."""
    texts = []
    for number, (observation, response) in enumerate(rollout.turns):
        texts.append((observation_text(observation) if number else "") + response.text)
    return "".join(texts)


@dataclass(frozen=True)
class RuleEnv:
    """An environment whose reward is a rule.

    Args:
        reward: The reward of the text behind the prompt.
        reply: The observation behind a response, from its text; None ends the rollout.
        terms: Further reward terms, from the text behind the prompt.
    """

    reward: Callable[[str], float]
    reply_to: Callable[[str], str | None] = lambda text: None
    terms: Callable[[str], dict[str, float]] = lambda text: {}

    async def reply(self, task: Task, rollout: Rollout):
        return self.reply_to(rollout.last_response.text) if rollout.turns else task.prompt

    async def score(self, task: Task, rollouts: Sequence[Rollout]):
        texts = [text_behind(rollout) for rollout in rollouts]
        return [RewardResult(float(self.reward(t)), {**self.terms(t)}) for t in texts]


def rows_of(group: Group) -> list[Trained]:
    """The trained rollouts of a group, as a reference states them; one for each context."""
    return [
        _row(context, _numbers(rollout))
        for rollout in group.rollouts
        if not rollout.error
        for context in rollout.contexts
    ]


def _row(context: Rollout, numbers: dict[str, float]) -> Trained:
    parts: list[Part] = []
    for number, (_, response) in enumerate(context.turns):
        if number:
            parts.append(forced(shown_letters(response.observation)))
        text = shown_letters(response.items)
        parts.append(Part(text, response.in_loss, response.sampled, response.off_context))
    prompt = shown_letters(context.turns[0][1].observation)
    terms = {**context.reward_terms, **numbers}
    return Trained(prompt, merged(parts), context.reward, terms, context.source)


def _numbers(rollout: Rollout) -> dict[str, float]:
    """The step values that references state: values of prefixes, and beliefs before turns."""
    values = rollout.step_values
    numbers = {
        f"value{i}": values["prefix_value"][i]
        for i, is_cut in enumerate(values.get("prefix_cut", ()))
        if is_cut
    }
    start = 0
    for turn, (_, response) in enumerate(rollout.turns):
        if "belief" in values:
            numbers[f"belief{turn}"] = values["belief"][start]
        start += len(response.items)
    return numbers
