"""The meaning of a number that a trained head returns for an answer or for a step."""

from typing import Literal

import numpy as np
from jaxtyping import Float
from scipy.special import expit

# margin: differences between answers to one task have a meaning, sigmoid(s - s') is a probability
# logit: sigmoid(s) is a probability; probability: s itself is one, once it is clipped to [0, 1]
HeadOutput = Literal["margin", "logit", "probability"]
Values = Float[np.ndarray, "n"]


def as_probability(output: HeadOutput, values: Values) -> Values:
    """Probabilities of the outputs of a head, (n,); those of a margin are of differences.

    >>> as_probability("logit", np.array([0.0])), as_probability("probability", np.array([1.5]))
    (array([0.5]), array([1.]))
    """
    if output == "probability":
        return values.clip(0.0, 1.0)
    return expit(values)
