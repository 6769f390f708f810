"""Key positions: a few tokens of an answer decide; the reward can be noisy or have more terms."""

import numpy as np

from grupo.core.component import component
from grupo.core.ranges import NonNegativeFloat, PositiveInt, Probability
from grupo.evidence.claims.environments.tabular import Attempts, Scores, TabularEnv, one_hot

SHOWY_ITEM = 1  # paid by the reward term `thinking`, without any effect on correctness
FORMAT_ITEM = 0  # the last item of a well-formed answer


@component
class KeyPositions:
    """An answer of `length` items is correct if the items at the task's key positions are.

    The other items do not matter. At a key position the policy prefers a wrong item before
    training. Task k has 1 + k mod `max_keys` keys, none of them at the last position.

    Args:
        num_tasks: Number of tasks.
        num_items: Size of the alphabet.
        length: Items of an answer.
        max_keys: Key positions of the hardest task.
        key_logit: Logit of the correct item of a key; the preferred wrong one has 1.5, others 0.
        false_positive: Probability that a wrong answer is rewarded.
        false_negative: Probability that a correct answer is not rewarded.
        tail: Scale of noise added to the reward: Student's t with 1.5 degrees of freedom.
        term_weights: Weights of `correct`, `format` and `thinking` in the reward.
    """

    num_tasks: PositiveInt = 16
    num_items: PositiveInt = 5
    length: PositiveInt = 10
    max_keys: PositiveInt = 3
    key_logit: float = 0.5
    false_positive: Probability = 0.0
    false_negative: Probability = 0.0
    tail: NonNegativeFloat = 0.0
    term_weights: tuple[float, float, float] = (1.0, 0.0, 0.0)

    def __call__(self, seed: int) -> TabularEnv:
        rng = np.random.default_rng(seed)
        task, position = np.divmod(np.arange(self.num_tasks * self.length), self.length)
        num_keys = 1 + np.arange(self.num_tasks) % self.max_keys
        order = rng.random((self.num_tasks, self.length - 1)).argsort(1)
        is_key = np.pad(order < num_keys[:, None], ((0, 0), (0, 1)))
        wrong_item, correct_item = rng.permuted(
            np.tile(np.arange(self.num_items), (len(task), 1)), axis=1
        )[:, :2].T
        key = is_key[task, position][:, None]
        at_key = 1.5 * one_hot(wrong_item, self.num_items)
        at_key += self.key_logit * one_hot(correct_item, self.num_items)
        elsewhere = 0.8 * rng.standard_normal((len(task), self.num_items))
        at_end = position == self.length - 1
        preferred = np.where(key, 2 * one_hot(correct_item, self.num_items) - 1, 0.0)
        preferred[at_end] = 2 * one_hot(np.full(at_end.sum(), FORMAT_ITEM), self.num_items) - 1
        required = np.where(is_key, correct_item.reshape(is_key.shape), -1)
        following = np.where(at_end, -1, np.arange(len(task)) + 1)
        return TabularEnv(
            np.arange(self.num_tasks) * self.length,
            np.repeat(following[:, None], self.num_items, axis=1),
            np.arange(len(task)),
            one_hot(position, self.length),
            np.where(key, at_key, elsewhere),
            preferred,
            self.length,
            lambda attempts, rng: self._score(attempts, required, rng),
        )

    def _score(self, attempts: Attempts, required: np.ndarray, rng: np.random.Generator) -> Scores:
        needed = required[attempts.task]
        fits = (needed < 0) | (attempts.item == needed)
        correct = fits.all(1).astype(float)
        free = needed[:, :-1] < 0
        showy = (attempts.item[:, :-1] == SHOWY_ITEM) & free
        terms = {
            "correct": correct,
            "format": (attempts.item[:, -1] == FORMAT_ITEM).astype(float),
            "thinking": showy.sum(1) / free.sum(1),
        }
        noisy = dict(terms, correct=self._noisy(correct, rng))
        reward = sum(w * x for w, x in zip(self.term_weights, noisy.values(), strict=True))
        reward = reward + self.tail * rng.standard_t(1.5, len(correct))
        return Scores(correct, reward, noisy)

    def _noisy(self, correct: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The verifier's label: flipped by the rates of false positives and false negatives."""
        u = rng.random(len(correct))
        return np.where(correct > 0, u >= self.false_negative, u < self.false_positive).astype(
            float
        )
