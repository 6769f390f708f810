"""Scores of a policy on demonstrations: the probabilities that it gives to their tokens."""

import math
from dataclasses import dataclass

DEMONSTRATION_METRICS = ("nll", "perplexity", "token_accuracy")  # keys of `to_data`
LOWER_IS_BETTER = frozenset({"nll", "perplexity"})


@dataclass(frozen=True)
class DemonstrationScores:
    """Scores of held-out demonstrations. Each token is predicted from the given tokens before it.

    Args:
        nll: Mean of -log pi over all tokens of the answers, in nats.
        token_accuracy: Fraction of the tokens to which the policy gives the highest probability.
        num_tokens: Number of the tokens.

    >>> DemonstrationScores(0.0, 1.0, 3).perplexity
    1.0
    """

    nll: float
    token_accuracy: float
    num_tokens: int

    @property
    def perplexity(self) -> float:
        """exp(nll); inf if it overflows."""
        return math.exp(self.nll) if self.nll < 700 else math.inf

    def to_data(self) -> dict[str, float]:
        """The scores by name, in the order of `DEMONSTRATION_METRICS`."""
        values = self.nll, self.perplexity, self.token_accuracy
        return dict(zip(DEMONSTRATION_METRICS, values, strict=True))

    def __str__(self) -> str:
        return (
            f"nll {self.nll:.4f}, perplexity {self.perplexity:.4g},"
            f" token accuracy {100 * self.token_accuracy:.1f} %"
        )
