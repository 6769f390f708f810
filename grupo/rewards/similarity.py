"""Similarities of an answer to the truth, for options, charts, captions and entities."""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize


def same_word(predicted: str, truth: str) -> float:
    """1 if the words are equal but for case and outer spaces; for multiple choice and yes or no.

    >>> same_word(" b", "B")
    1.0
    """
    return float(predicted.strip().lower() == truth.strip().lower())


def chart_match(predicted: str, truth: str, tolerance: float = 0.05) -> float:
    """1 if two numbers are equal up to a relative tolerance, or two words are equal; for charts.

    Args:
        predicted: The answer; a percent sign after a number is ignored.
        truth: The true answer.
        tolerance: Largest difference, as a fraction of the true number.

    >>> chart_match("104", "100"), chart_match("106 %", "100")
    (1.0, 0.0)
    """
    try:
        target = float(truth.rstrip(" %"))
        return float(abs(float(predicted.rstrip(" %")) - target) <= tolerance * abs(target))
    except ValueError:
        return same_word(predicted, truth)


def bmas(predicted: Float[Tensor, "m H"], truth: Float[Tensor, "n H"]) -> float:
    """Bidirectional max-average similarity of token embeddings, at least 0; for captions.

    The mean over the tokens of one text of the largest cosine with the other's, averaged over both
    directions.

    Args:
        predicted: Embeddings of the answer's m tokens.
        truth: Embeddings of the true caption's n tokens.

    >>> import torch
    >>> bmas(torch.eye(3)[:2], torch.eye(3)[1:])
    0.5
    """
    cosine = normalize(predicted.double(), dim=1) @ normalize(truth.double(), dim=1).T
    return max(0.0, float(cosine.amax(1).mean() + cosine.amax(0).mean()) / 2)


def entity_recall(text: str, entities: Sequence[str]) -> float:
    """The fraction of the entities that occur in the text, ignoring case and spacing.

    >>> entity_recall("the eiffel  tower", ["Eiffel Tower", "Paris"])
    0.5
    """
    normalized = " ".join(text.lower().split())
    mentioned = [" ".join(entity.lower().split()) in normalized for entity in entities]
    return sum(mentioned) / max(len(mentioned), 1)
