"""Value-augmented sampling (VAS): decoding by value heads. Han et al., 2024, arXiv:2405.06639."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from math import exp, log

from grupo.core.component import check_field, component
from grupo.core.interfaces import Actor, single_response
from grupo.core.paper import Paper, Source
from grupo.core.ranges import FinitePositive, PositiveInt
from grupo.core.types import Observation, Response, Rollout
from grupo.rollouts.turns.join_responses import join_responses


@component
class ValueGuided:
    """Samples each token from q(a|s) = pi(a|s) exp(V(s, a) / beta) / Z, over the likeliest tokens.

    V(s, a) is the weighted sum of value heads in the state after token a. If the heads predict the
    value of the KL-regularised problem, V(s) = beta log E_pi exp(r / beta), then q is the policy
    that maximises E[r] - beta KL(q || pi). A token that ends the response has the mean value of the
    other candidates, weighted by pi, because heads are not trained on the state after such a token.

    The response is `sampled`, and also `off_context`, because its `logp` is log q. A token costs
    one decoding step and `top_k` predictions of each head, which are computed in one batch. The
    policy's token limit ends the response.

    Args:
        heads: Names of auxiliary heads of the policy, each with its weight.
        top_k: Number of likeliest tokens, under the sampling temperature, that are considered.
        beta: Weight of the KL divergence, in the unit of the values per nat.

    Raises:
        ConfigError: There are no heads. When the turn is taken: the policy has no such head.
    """

    heads: tuple[tuple[str, float], ...] = (("value", 1.0),)
    top_k: PositiveInt = 20
    beta: FinitePositive = 1.0

    def __post_init__(self) -> None:
        check_field(self, "heads", bool(self.heads), "at least one (name, weight)")

    @property
    def read_heads(self) -> tuple[str, ...]:
        """The names of the heads."""
        return tuple(name for name, _ in self.heads)

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        rng = actor.rng("value guided", rollout.length)
        guided, next_observation = rollout, observation
        while tokens := await actor.next_tokens(guided, next_observation, self.top_k):
            values = await self._values(actor, guided, next_observation, tokens)
            logq = guided_logp([token.logp[0] for token in tokens], values, self.beta)
            (index,) = rng.choices(range(len(tokens)), [exp(x) for x in logq])
            token = replace(tokens[index], logp=(logq[index],), sampled=True, off_context=True)
            response = token if guided is rollout else join_responses(guided.last_response, token)
            guided, next_observation = rollout.append_turn(observation, response), ""
            if token.finish_reason != "length":
                break
        if guided is rollout:  # no room for a token
            return await single_response(actor, rollout, observation)
        return guided

    async def _values(
        self, actor: Actor, rollout: Rollout, observation: Observation, tokens: Sequence[Response]
    ) -> list[float]:
        """The value of each token; the mean of the others for a token that ends the response."""
        continuing = [token for token in tokens if token.finish_reason == "length"]
        states = [rollout.append_turn(observation, token) for token in continuing]
        predictions = await asyncio.gather(
            *(actor.predict_head(state, name) for state in states for name, _ in self.heads)
        )
        weights = [weight for _, weight in self.heads]
        rows = [predictions[i : i + len(weights)] for i in range(0, len(predictions), len(weights))]
        values = [sum(w * v for w, v in zip(weights, row, strict=True)) for row in rows]
        probabilities = [exp(token.logp[0]) for token in continuing]
        total = sum(p * v for p, v in zip(probabilities, values, strict=True))
        mean = total / sum(probabilities) if continuing else 0.0
        remaining = iter(values)
        return [next(remaining) if t.finish_reason == "length" else mean for t in tokens]


def guided_logp(logp: Sequence[float], values: Sequence[float], beta: float) -> list[float]:
    """log q of each candidate, q proportional to exp(logp + value / beta), in nats.

    >>> [round(exp(x), 4) for x in guided_logp([log(0.5), log(0.5)], [1.0, 0.0], beta=1.0)]
    [0.7311, 0.2689]
    """
    scores = [p + value / beta for p, value in zip(logp, values, strict=True)]
    largest = max(scores)
    log_sum = largest + log(sum(exp(score - largest) for score in scores))
    return [score - log_sum for score in scores]


PAPER = Paper(
    title="Value Augmented Sampling for Language Model Alignment and Personalization",
    kind="evaluation",
    use="Several rewards are traded off when answers are generated, and the weights stay as is.",
    tags=("critic", "reward"),
    checked=("golden",),
    catalogue=("value-augmented-sampling",),
    source=Source("abstract", "abstract and summaries of the paper; the code was not opened"),
    missing=(
        "Training of the values by TD(lambda) on answers of the frozen policy in one command; "
        "ValueLoss with GAE and OutcomeValueLoss are its parts.",
        "A value model beside a policy behind an API; heads belong to the policy here.",
        "The comparison with best-of-n, PPO and DPO.",
    ),
    deviations=(
        "beta divides the values, as the weight of the KL divergence; top_k of 20 is from memory.",
        "A token that ends the answer has the mean value of the other candidates.",
    ),
    shown=(
        "tests/rollouts/turns/test_value_guided.py::test_guided_chain_is_the_kl_optimal_policy",
    ),
)
