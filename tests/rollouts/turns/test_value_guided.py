"""Decoding guided by value heads, with scripted probabilities and values."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from math import exp, log

import pytest

from grupo.core.interfaces import run_rollout
from grupo.core.types import Response
from grupo.rollouts.turns import ValueGuided
from grupo.rollouts.turns.value_guided import guided_logp
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import END, TASK, Once, Script

LETTERS = "ab"
BETA = 0.5


@dataclass(frozen=True)
class GuidedScript(Script):
    """A script with probabilities of the next letters and values of the texts so far."""

    probabilities: Callable[[str], dict[str, float]] = lambda text: {END: 1.0}
    values: Callable[[str, str], float] = lambda text, head: 0.0

    async def next_tokens(self, rollout, observation, k):
        likeliest = sorted(self.probabilities(rollout.text).items(), key=lambda item: -item[1])[:k]
        return [
            Response(
                (letter,),
                (log(p),),
                tuple(observation),
                letter,
                "end" if letter == END else "length",
                sampled=False,
            )
            for letter, p in likeliest
        ]

    async def predict_head(self, rollout, head):
        return self.values(rollout.text, head)


def actor_of(probabilities, values, key=0):
    return GuidedScript(lambda context, key: END, [], key, (), 1000, probabilities, values)


def roll_out(strategy, actor):
    return asyncio.run(run_rollout(TASK, Once(), actor, turn_strategy=strategy))


def chain(text):
    """Three letters, whose probabilities depend on the letters before, and the end."""
    return {END: 1.0} if len(text) == 3 else {"a": (p := 1 / (2 + len(text))), "b": 1 - p}


def pi(text):
    """Probability of a text under the chain."""
    result = 1.0
    for i, letter in enumerate(text):
        result *= chain(text[:i])[letter]
    return result


def reward(text):
    return text.count("a") + (text == "bab") - 0.5 * (text[0] == "b")


def soft_value(text, head):
    """beta log E_pi exp(r / beta) over the completions of `text`."""
    ends = ["".join(rest) for rest in product(LETTERS, repeat=3 - len(text))]
    return BETA * log(
        sum(pi(text + end) / pi(text) * exp(reward(text + end) / BETA) for end in ends)
    )


def test_two_equally_likely_tokens_of_values_1_and_0():
    # 1 / (1 + e^-1) and its complement
    assert [exp(x) for x in guided_logp([log(0.5)] * 2, [1.0, 0.0], 1.0)] == pytest.approx(
        [0.7311, 0.2689], abs=5e-5
    )


def test_a_large_beta_is_the_policy_and_a_small_one_takes_the_best_value():
    logp = [log(0.9), log(0.1)]
    assert guided_logp(logp, [0.0, 1.0], 1e9) == pytest.approx(logp)
    assert guided_logp(logp, [0.0, 1.0], 1e-3)[1] == pytest.approx(0.0)


def test_guided_chain_is_the_kl_optimal_policy():
    # q(y) = pi(y) exp(r(y) / beta) / Z, for each of the eight texts
    texts = ["".join(letters) for letters in product(LETTERS, repeat=3)]
    weights = {text: pi(text) * exp(reward(text) / BETA) for text in texts}
    optimum = {text: weight / sum(weights.values()) for text, weight in weights.items()}
    strategy = ValueGuided((("value", 1.0),), beta=BETA)
    counts = Counter()
    for key in range(400):
        rollout = roll_out(strategy, actor_of(chain, soft_value, key))
        text = rollout.text.removesuffix(END)
        assert sum(rollout.last_response.logp) == pytest.approx(log(optimum[text]))
        counts[text] += 1
    for text in texts:  # four standard deviations of a share of 400
        assert counts[text] / 400 == pytest.approx(
            optimum[text], abs=4 * (optimum[text] * (1 - optimum[text]) / 400) ** 0.5
        )


def test_response_is_one_turn_sampled_from_another_distribution():
    rollout = roll_out(ValueGuided(), actor_of(chain, soft_value))
    ((observation, response),) = rollout.turns
    assert (observation, response.observation) == ("Q", ("Q",))
    assert (len(response.items), response.text[-1], response.finish_reason) == (4, END, "end")
    assert (response.sampled, response.off_context) == (True, True)


def test_heads_are_weighted():
    def values(text, head):
        return {"first": text.count("a"), "second": text.count("b")}[head]

    def logp_of_a(*heads):
        rollout = roll_out(
            ValueGuided(heads, beta=0.01),
            actor_of(lambda text: {END: 1.0} if text else {"a": 0.5, "b": 0.5}, values),
        )
        return rollout.text[0]

    assert logp_of_a(("first", 1.0), ("second", 0.5)) == "a"
    assert logp_of_a(("first", 0.5), ("second", 1.0)) == "b"
    assert logp_of_a(("first", -1.0)) == "b"


def test_only_the_likeliest_tokens_are_considered():
    def values(text, head):
        return 100.0 * text.count("c")

    def three(text):
        return {END: 1.0} if text else {"a": 0.5, "b": 0.3, "c": 0.2}

    assert roll_out(ValueGuided(top_k=3), actor_of(three, values)).text == "c."
    assert roll_out(ValueGuided(top_k=2), actor_of(three, values)).text != "c."


def test_a_token_that_ends_the_response_has_the_mean_value_of_the_others():
    def probabilities(text):
        return {END: 1.0} if text else {"a": 0.3, "b": 0.1, END: 0.6}

    def values(text, head):
        return {"a": 2.0, "b": -2.0}[text]  # the state behind the end is never valued

    # mean (0.3 * 2 - 0.1 * 2) / 0.4 = 1
    ends = next(
        rollout
        for key in range(100)
        if (rollout := roll_out(ValueGuided(), actor_of(probabilities, values, key))).text == END
    )
    total = 0.3 * exp(2) + 0.1 * exp(-2) + 0.6 * exp(1)
    assert ends.last_response.logp == pytest.approx([log(0.6 * exp(1) / total)])


def test_a_context_without_room_gets_the_policys_own_response():
    actor = actor_of(lambda text: {}, soft_value)
    rollout = roll_out(ValueGuided(), actor)
    assert rollout == asyncio.run(run_rollout(TASK, Once(), actor))


def test_the_same_stream_gives_the_same_response():
    texts = [roll_out(ValueGuided(), actor_of(chain, soft_value, key)).text for key in range(20)]
    again = [roll_out(ValueGuided(), actor_of(chain, soft_value, key)).text for key in range(20)]
    assert texts == again
    assert len(set(texts)) > 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"heads": ()}, r"ValueGuided.heads: \(\). Allowed: at least one \(name, weight\)"),
        ({"top_k": 0}, "ValueGuided.top_k: 0. Allowed"),
        ({"beta": 0.0}, "ValueGuided.beta: 0.0. Allowed: above 0"),
    ],
)
def test_wrong_fields_are_rejected(fields, message):
    with pytest.raises(ConfigError, match=message):
        ValueGuided(**fields)
