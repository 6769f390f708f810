"""Rewards of answers that are code for a picture, by comparison with the reference picture."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import UInt8

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, whole_text
from grupo.core.ranges import NonNegativeFloat
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward, reference_text
from grupo.util.errors import ConfigError

Pixels = UInt8[np.ndarray, "H W 3"]
Renderer = Callable[[str], Pixels | None]
WHITE = 255


def ink_overlap(a: Pixels, b: Pixels) -> float:
    """sum min(ink_a, ink_b) / sum max(ink_a, ink_b) over all pixels and channels, in [0, 1].

    The ink of a value is its distance from white. The smaller picture is padded with white on the
    right and below. The overlap of two white pictures is 1.

    >>> white, black = np.full((1, 2, 3), 255, np.uint8), np.zeros((1, 1, 3), np.uint8)
    >>> ink_overlap(black, np.zeros((1, 2, 3), np.uint8)), ink_overlap(white, white)
    (0.5, 1.0)
    """
    height, width = np.maximum(a.shape[:2], b.shape[:2])
    padded_inks = [
        np.pad(WHITE - x.astype(int), ((0, height - len(x)), (0, width - x.shape[1]), (0, 0)))
        for x in (a, b)
    ]
    union = np.maximum(*padded_inks).sum()
    return float(np.minimum(*padded_inks).sum() / union) if union else 1.0


@component
class RenderSimilarity(PerRolloutReward):
    """Similarity of the pictures of the answer and of the reference answer, plus `valid_bonus`.

    Both answers are code that `render` turns into a picture. An answer that cannot be rendered
    scores 0.

    Args:
        render: Returns the pixels of a text, or None: `SvgRenderer()`, `FormulaRenderer()`, or a
            function that runs code in a sandbox.
        similarity: Similarity of two pictures, from 0 to 1, such as that of an image encoder.
        valid_bonus: Reward of an answer that can be rendered.
        extract: Finds the code in the rollout's text.

    >>> from grupo.core.types import Response
    >>> from grupo.tasks.renderers import SvgRenderer
    >>> texts = ('<svg><rect width="2" height="4"/></svg>', "<svg>")
    >>> rollouts = [Rollout((("?", Response((), (), text=text)),)) for text in texts]
    >>> task = Task("k", "?", '<svg><rect width="4" height="4"/></svg>')
    >>> RenderSimilarity(SvgRenderer(4))(task, rollouts)
    [0.6, 0.0]
    """

    render: Renderer
    similarity: Callable[[Pixels, Pixels], float] = ink_overlap
    valid_bonus: NonNegativeFloat = 0.1
    extract: Extractor = whole_text

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0 + self.valid_bonus)

    def score(self, task: Task, rollout: Rollout) -> float:
        text = self.extract(rollout.text)
        pixels = self.render(text) if text else None
        if pixels is None:
            return 0.0
        return self.similarity(pixels, self._reference(task)) + self.valid_bonus

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task whose reference answer cannot be rendered."""
        for task in tasks:
            self._reference(task)

    def _reference(self, task: Task) -> Pixels:
        pixels = self.render(reference_text(task))
        if pixels is None:
            raise ConfigError(
                f"tasks: {task.location or task.key}: the reference answer"
                f" {str(task.reference_answer)[:80]!r} cannot be rendered."
            )
        return pixels
