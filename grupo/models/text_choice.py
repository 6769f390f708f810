"""Choice among given texts: the drawn text and the probability of each of its tokens."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, permutations
from math import isclose, log
from random import Random
from typing import NamedTuple

from grupo.util.errors import ConfigError

Tokens = tuple[int, ...]


class TextChoice(NamedTuple):
    """A text that was drawn among several, with the log-probability of each of its tokens."""

    text: str
    tokens: Tokens
    logp: tuple[float, ...]


def draw_text(
    probabilities: Mapping[str, float], encode: Callable[[str], Tokens], rng: Random
) -> TextChoice:
    """Draw one of the texts.

    The log-probability of a token is that of the given distribution after the tokens before it:
    where two texts differ in their first token, the first token has the log of the text's
    probability and all later ones have 0. The sum over tokens is the log of that probability.

    Args:
        probabilities: Probability of each text; their sum is 1.
        encode: Returns the tokens of a text.
        rng: Random generator of the draw.

    Raises:
        ConfigError: The probabilities are none, or a text is the beginning of another in tokens.

    >>> texts = {"ab": 0.5, "ac": 0.25, "b": 0.25}
    >>> text, tokens, logp = draw_text(texts, lambda text: tuple(map(ord, text)), Random(5))
    >>> text, [round(x, 3) for x in logp]  # log(3 / 4) and log(1 / 3)
    ('ac', [-0.288, -1.099])
    """
    _check_probabilities(probabilities)
    tokens = {text: encode(text) for text in probabilities}
    _check_distinct(tokens)
    text = _draw(probabilities, rng)
    return TextChoice(text, tokens[text], _token_logps(tokens[text], probabilities, tokens))


def _draw(probabilities: Mapping[str, float], rng: Random) -> str:
    """A text by the inverse of the cumulative distribution, in the order of the mapping."""
    possible = [text for text, probability in probabilities.items() if probability > 0]
    left = rng.random()
    for text in possible:
        left -= probabilities[text]
        if left < 0:
            return text
    return possible[-1]  # the sum is below 1 by rounding


def _token_logps(
    drawn: Tokens, probabilities: Mapping[str, float], tokens: Mapping[str, Tokens]
) -> tuple[float, ...]:
    """log P(token | tokens before it) under the distribution over texts."""

    def mass(prefix: Tokens) -> float:
        texts = [text for text, own in tokens.items() if own[: len(prefix)] == prefix]
        return sum(probabilities[text] for text in texts)

    masses = [1.0, *(mass(drawn[: i + 1]) for i in range(len(drawn)))]
    return tuple(log(after / before) for before, after in pairwise(masses))


def _check_probabilities(probabilities: Mapping[str, float]) -> None:
    values = [*probabilities.values()]
    if not isclose(sum(values), 1.0, abs_tol=1e-6) or min(values) < 0:
        raise ConfigError(
            f"sampler: it chooses among texts with the probabilities {dict(probabilities)}."
            " Allowed: numbers of at least 0 whose sum is 1."
        )


def _check_distinct(tokens: Mapping[str, Sequence[int]]) -> None:
    for first, second in permutations(tokens, 2):
        if tokens[second][: len(tokens[first])] == tokens[first]:
            raise ConfigError(
                f"sampler: it chooses among texts, of which {first[:60]!r} is the beginning of"
                f" {second[:60]!r} in tokens. Allowed: texts that differ in a token."
            )
    if not all(tokens.values()):
        raise ConfigError("sampler: it chooses the text ''. Allowed: texts with a token.")
