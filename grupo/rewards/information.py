"""The information content of answers to several wordings of one prompt, and its stability."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean

from grupo.core.component import component
from grupo.core.paper import Paper, Source
from grupo.core.ranges import NonNegativeFloat, PositiveFloat
from grupo.core.types import Rollout, Task


def word_entropy(text: str) -> float:
    """Shannon entropy of the distribution of a text's words, in bits.

    >>> word_entropy("a b c d"), word_entropy("a a b b"), word_entropy("")
    (2.0, 1.0, 0.0)
    """
    words = text.split()
    shares = [count / len(words) for count in Counter(words).values()]
    return -sum(share * math.log2(share) for share in shares) + 0.0


@component
class InformationConsistency:
    """helpfulness_weight h + stability_weight s from the word entropy H of each answer of a group.

    h = min(H / full_entropy, 1), s = -|H - mean(H)| / (mean(H) + 1e-6). The group has answers to
    several wordings of one prompt (`ParaphraseSampler`). Equal entropy is not equal content: where
    that matters, replace s by `CrossPromptSimilarity`. The further numbers are h, s and H.

    Args:
        full_entropy: Entropy of a helpful answer, in bits.
        helpfulness_weight: Weight of h.
        stability_weight: Weight of s.

    >>> from grupo.core.types import Response
    >>> answers = [Rollout((("?", Response((), (), text=t)),)) for t in ("a b c d", "a a b b")]
    >>> values = InformationConsistency()(Task("k", "?"), answers)
    >>> [round(value["stability"], 3) for value in values]
    [-0.333, -0.333]
    """

    full_entropy: PositiveFloat = 6.0
    helpfulness_weight: NonNegativeFloat = 0.5
    stability_weight: NonNegativeFloat = 0.5

    def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> list[Mapping[str, float]]:
        entropies = [word_entropy(rollout.text) for rollout in rollouts]
        mean = fmean(entropies) if entropies else 0.0
        return [self._value(entropy, mean) for entropy in entropies]

    def _value(self, entropy: float, mean: float) -> Mapping[str, float]:
        helpfulness = min(entropy / self.full_entropy, 1.0)
        stability = -abs(entropy - mean) / (mean + 1e-6)
        score = self.helpfulness_weight * helpfulness + self.stability_weight * stability
        terms = {"helpfulness": helpfulness, "stability": stability, "entropy": entropy}
        return {"score": score, **terms}


PAPER = Paper(
    title="Information-Consistent Language Model Recommendations through Group Relative Policy "
    "Optimization",
    kind="reward",
    use="The same question in other words, or by another person, should get as much information.",
    tags=("reward", "unsupervised"),
    catalogue=("info-consistent-grpo",),
    source=Source("abstract", "the formulas are the catalogue's reading"),
    checked=("golden",),
    deviations=(
        "Formulas, weights of 0.5 and the 6 bits that count as helpful are a reading: the abstract"
        " alone was open.",
    ),
    shown=(
        "docs/small_claims.md#information-that-is-stable-over-wordings",
        "tests/rewards/test_information.py::test_equal_entropy_with_other_content_fools_stability",
    ),
)
