"""How close an answer comes to the truth: options, charts, captions, entities."""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize


def same_word(predicted: str, truth: str) -> float:
    """For options, and yes or no: 1 if they are the same word.

    >>> same_word(" b", "B")
    1.0
    """
    return float(predicted.strip().lower() == truth.strip().lower())


def chart_match(predicted: str, truth: str, tolerance: float = 0.05) -> float:
    """For charts: 1 if numbers differ by `old_logp_tolerance` of the truth at most, words not at all.

    >>> chart_match("104", "100"), chart_match("106 %", "100")
    (1.0, 0.0)
    """
    try:
        wanted = float(truth.rstrip(" %"))
        return float(abs(float(predicted.rstrip(" %")) - wanted) <= tolerance * abs(wanted))
    except ValueError:
        return same_word(predicted, truth)


def bmas(predicted: Float[Tensor, "m H"], truth: Float[Tensor, "n H"]) -> float:
    """For captions: mean over either's tokens of the greatest cosine with the other's, never < 0.

    Bidirectional max-average similarity of rows of the tokenizer's embedding table.

    >>> import torch
    >>> bmas(torch.eye(3)[:2], torch.eye(3)[1:])
    0.5
    """
    cosine = normalize(predicted.double(), dim=1) @ normalize(truth.double(), dim=1).T
    return max(0.0, float(cosine.amax(1).mean() + cosine.amax(0).mean()) / 2)


def entity_recall(text: str, entities: Sequence[str]) -> float:
    """The share of the entities that are named in the thoughts, whatever their case and spaces.

    >>> entity_recall("the eiffel  tower", ["Eiffel Tower", "Paris"])
    0.5
    """
    said = " ".join(text.lower().split())
    named = [" ".join(entity.lower().split()) in said for entity in entities]
    return sum(named) / max(len(named), 1)
