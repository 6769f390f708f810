"""Rewards for agreement within a group: majority votes, and similarity across prompts."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from math import exp, prod
from statistics import fmean

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, last_boxed
from grupo.core.types import Observation, Rollout, Task


def majority_votes(answers: Sequence[Hashable | None]) -> list[float]:
    """1 for each most frequent answer, else 0; several may tie, and None neither votes nor wins.

    >>> majority_votes(["4", "5", "4", None])
    [1.0, 0.0, 1.0, 0.0]
    """
    votes = Counter(answer for answer in answers if answer is not None)
    max_votes = max(votes.values(), default=0)
    return [float(votes[answer] == max_votes > 0) for answer in answers]


@component
class MajorityVote:
    r"""1 if the extracted answer is the most frequent one of the group, compared as text.

    An empty answer neither votes nor wins.

    TTRL, Zuo et al. (arXiv:2504.16084).

    Args:
        extract: Finds the answer in the rollout's text.

    >>> from grupo.core.types import Response
    >>> responses = [Response((1,), (0.0,), text=t) for t in (r"\boxed{4}", r"\boxed{4}", "4")]
    >>> MajorityVote()(Task("k", "?"), [Rollout((("?", response),)) for response in responses])
    [1.0, 1.0, 0.0]
    """

    extract: Extractor = last_boxed

    def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> list[float]:
        return majority_votes([self.extract(rollout.text) or None for rollout in rollouts])


def bleu(candidate: str, reference: str, max_order: int = 2) -> float:
    """BLEU: exp(min(0, 1 - |reference| / |candidate|)) times the mean n-gram precision.

    The mean is geometric, over n from 1 to `max_order` or to the words of the shorter text. BLEU
    is 0 if a text is empty.

    >>> bleu("a b", "a c", max_order=1)
    0.5
    """
    a = candidate.split()
    b = reference.split()
    n = min(max_order, len(a), len(b))
    if not n:
        return 0.0
    precisions = [
        (_ngrams(a, k) & _ngrams(b, k)).total() / (len(a) - k + 1) for k in range(1, n + 1)
    ]
    return exp(min(0.0, 1 - len(b) / len(a))) * prod(precisions) ** (1 / n)


@component
class CrossPromptSimilarity:
    """Mean similarity to the rollouts of the group's other prompts.

    The further number `prompt` is the index of the first rollout with the same prompt. PS-GRPO,
    Hamman et al. (arXiv:2510.04392).

    Args:
        similarity: `similarity(text, other_text)`.

    >>> from grupo.core.types import Response
    >>> answer = Response((1,), (0.0,), text="Paris")
    >>> prompts = ("France?", "The capital of France?")
    >>> rollouts = [Rollout(((prompt, answer),)) for prompt in prompts]
    >>> CrossPromptSimilarity()(Task("k", "?"), rollouts)
    [{'score': 1.0, 'prompt': 0}, {'score': 1.0, 'prompt': 1}]
    """

    similarity: Callable[[str, str], float] = bleu

    def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> list[dict[str, float]]:
        prompts = [rollout.turns[0][0] for rollout in rollouts]
        values = []
        for index, prompt in enumerate(prompts):
            similarities = self._cross_similarities(index, prompts, rollouts)
            values.append({"score": fmean(similarities or [0.0]), "prompt": prompts.index(prompt)})
        return values

    def _cross_similarities(
        self, index: int, prompts: Sequence[Observation], rollouts: Sequence[Rollout]
    ) -> list[float]:
        others = (r.text for p, r in zip(prompts, rollouts, strict=True) if p != prompts[index])
        return [self.similarity(rollouts[index].text, text) for text in others]


def _ngrams(words: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[k : k + n]) for k in range(len(words) - n + 1))
