"""A token budget in the prompt of a task, which may shrink in the course of a run."""

from collections.abc import Sequence

from grupo.core.component import component
from grupo.core.numbers import Positive
from grupo.core.paper import Paper, Source
from grupo.core.types import Task
from grupo.rollouts.curricula.base import Curriculum, CurriculumRequest
from grupo.tasks.length_budget import SENTENCE, check_sentence, with_budget


@component
class StatedBudget:
    """The tasks of `inner` with the current token budget in their prompts and in a column.

    The rewards `BudgetTriangle` and `BudgetBand` read the column `budget`. Train Long, Think Short
    (arXiv:2508.08940): `StatedBudget(ShuffledTasks(), GeometricSteps(256, 87))`.

    Args:
        inner: The curriculum that chooses the tasks.
        budget: Length in tokens that an answer should have; rounded, and at least 1.
        sentence: Text at the end of the prompt, with the field {budget}.

    Raises:
        ConfigError: The sentence does not name the budget.
    """

    inner: Curriculum
    budget: Positive
    sentence: str = SENTENCE

    def __post_init__(self) -> None:
        check_sentence(self.sentence)

    def __call__(self, request: CurriculumRequest) -> Sequence[Task]:
        assert isinstance(self.budget, int | float)
        budget = max(1, round(float(self.budget)))
        return [with_budget(task, budget, self.sentence) for task in self.inner(request)]


PAPER = Paper(
    title="Train Long, Think Short: Curriculum Learning for Efficient Reasoning",
    kind="curriculum",
    use="Answers should become short without a loss of accuracy.",
    tags=("curriculum", "length", "reward"),
    catalogue=("curriculum-grpo-budget",),
    source=Source("paper", "arXiv 2508.08940 v1, sections 3 and 4, as the catalogue cites them"),
    checked=("golden",),
    deviations=(
        "The weight 0.1 of the format and the size 1 of the rewards are our choice.",
        "The variance of a group's rewards divides by G - 1, as in the library's GRPO.",
    ),
    shown=("docs/small_claims.md#a-budget-that-shrinks",),
)
