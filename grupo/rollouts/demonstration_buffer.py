"""A bounded buffer of tasks that the policy has solved, searched for tasks with similar prompts."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from grupo.core.prompt_text import prompt_as_text
from grupo.core.types import Rollout, SolvedTask, Task
from grupo.util.bm25 import Bm25

MAX_SOLVED_TASKS = 1024  # the task that was solved longest ago is dropped first
SUCCESS_THRESHOLD = 0.5  # a rollout with a higher reward is correct


@dataclass
class DemonstrationBuffer:
    """The last correct answer of the policy to each task that it has solved.

    Only answers that the policy itself sampled are kept, and no answers of other roles.

    Args:
        solved: The solved tasks by their key. The task that was solved longest ago comes first.
    """

    solved: dict[str, SolvedTask] = field(default_factory=dict)
    _index: Bm25 | None = field(default=None, compare=False, repr=False)

    def add(self, task: Task, scored: Sequence[Rollout]) -> None:
        """Keep the first of a group's correct answers with the highest reward, if there is one.

        Args:
            task: The task of the group.
            scored: The rollouts of the group that could be scored.
        """
        correct = [r for r in scored if r.reward > SUCCESS_THRESHOLD and _is_own(r)]
        if not correct:
            return
        best = max(correct, key=lambda rollout: rollout.reward)
        self.solved.pop(task.key, None)
        self.solved[task.key] = SolvedTask(prompt_as_text(task.prompt), best.text)
        if len(self.solved) > MAX_SOLVED_TASKS:
            del self.solved[next(iter(self.solved))]
        self._index = None

    def most_similar(self, task: Task, count: int) -> tuple[SolvedTask, ...]:
        """Other solved tasks whose prompts share words with a task's prompt, most similar first.

        Args:
            task: The task. It is not part of the result, even if it was solved.
            count: Largest number of solved tasks.
        """
        if not count or not self.solved:
            return ()
        if self._index is None:
            self._index = Bm25([solved.prompt for solved in self.solved.values()])
        keys = [*self.solved]
        indices = self._index.search(prompt_as_text(task.prompt), count + 1)
        others = [keys[i] for i in indices if keys[i] != task.key]
        return tuple(self.solved[key] for key in others[:count])

    def copy(self) -> "DemonstrationBuffer":
        """A snapshot, which does not change when answers are added to this buffer."""
        return DemonstrationBuffer(dict(self.solved), self._index)

    def to_data(self) -> list[list[str]]:
        """The buffer as JSON data."""
        return [[key, solved.prompt, solved.answer] for key, solved in self.solved.items()]

    @classmethod
    def from_data(cls, data: Sequence[Sequence[str]]) -> "DemonstrationBuffer":
        """Inverse of `to_data`."""
        return cls({key: SolvedTask(prompt, answer) for key, prompt, answer in data})


def _is_own(rollout: Rollout) -> bool:
    """Whether the policy itself sampled the rollout's trained responses."""
    trained = [response for _, response in rollout.turns if response.in_loss]
    return not rollout.role and bool(trained) and all(response.sampled for response in trained)
