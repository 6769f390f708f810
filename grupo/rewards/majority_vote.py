"""Rewards of agreement: with the group's other answers, in words or in result."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from math import exp, prod
from statistics import fmean

from grupo.core.component import component
from grupo.core.types import Observation, Rollout, Task
from grupo.rewards.extract_answer import Extractor, last_boxed


def majority_votes(answers: Sequence[Hashable | None]) -> list[float]:
    """1 for who gives the most frequent answer, all of them where several are; None never votes.

    >>> majority_votes(["4", "5", "4", None])
    [1.0, 0.0, 1.0, 0.0]
    """
    votes = Counter(answer for answer in answers if answer is not None)
    most = max(votes.values(), default=0)
    return [float(votes[answer] == most > 0) for answer in answers]


@component
class MajorityVote:
    r"""`majority` of what `extract` finds, spelled alike.

    TTRL, Zuo et al. (arXiv:2504.16084).

    >>> from grupo.core.types import Action
    >>> says = [Action((1,), (0.0,), text=text) for text in (r"\boxed{4}", r"\boxed{4}", "4")]
    >>> MajorityVote()(Task("k", "?"), [Rollout((("?", action),)) for action in says])
    [1.0, 1.0, 0.0]
    """

    extract: Extractor = last_boxed

    def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> list[float]:
        return majority_votes([self.extract(rollout.text) for rollout in rollouts])


def bleu(candidate: str, reference: str, max_order: int = 2) -> float:
    """exp(min(0, 1 - |other| / |said|)) times the geometric mean of the shares of shared n-grams.

    n is 1 to `order`, or as many words as the shorter text has; 0 where one is empty.

    >>> bleu("a b", "a c", max_order=1)
    0.5
    """
    a, b = candidate.split(), reference.split()
    n = min(max_order, len(a), len(b))
    if not n:
        return 0.0
    shares = [(_ngrams(a, k) & _ngrams(b, k)).total() / (len(a) - k + 1) for k in range(1, n + 1)]
    return exp(min(0.0, 1 - len(b) / len(a))) * prod(shares) ** (1 / n)


@component
class CrossPromptSimilarity:
    """Mean similarity to the rollouts of the group's other prompts; `prompt` numbers its own.

    PS-GRPO, Hamman et al. (arXiv:2510.04392).

    >>> from grupo.core.types import Action
    >>> say = Action((1,), (0.0,), text="Paris")
    >>> asked = [Rollout(((prompt, say),)) for prompt in ("France?", "The capital of France?")]
    >>> CrossPromptSimilarity()(Task("k", "?"), asked)
    [{'score': 1.0, 'prompt': 0}, {'score': 1.0, 'prompt': 1}]
    """

    similarity: Callable[[str, str], float] = bleu

    def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> list[dict[str, float]]:
        asked = [rollout.turns[0][0] for rollout in rollouts]
        scores = [
            fmean(self._cross_similarities(i, asked, rollouts) or [0.0]) for i in range(len(asked))
        ]
        pairs = zip(scores, asked, strict=True)
        return [{"score": score, "prompt": asked.index(prompt)} for score, prompt in pairs]

    def _cross_similarities(
        self, index: int, prompts: Sequence[Observation], rollouts: Sequence[Rollout]
    ) -> list[float]:
        others = (r.text for p, r in zip(prompts, rollouts, strict=True) if p != prompts[index])
        return [self.similarity(rollouts[index].text, text) for text in others]


def _ngrams(words: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[k : k + n]) for k in range(len(words) - n + 1))
