"""Finite environments: tasks with so few answers that all groups of rollouts can be listed.

The policy is a table in float64: a distribution over the next token for every beginning of an
answer. Its expected reward and the gradient of that are exact.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.util.errors import ConfigError

Tokens = tuple[int, ...]
TableRow = tuple[int, Tokens]  # a task, and the beginning of an answer to it
Logits = Float[Tensor, "S V"]  # S rows of the policy's table, V tokens


@dataclass(frozen=True)
class FiniteTask:
    """A task with finitely many answers.

    The answers are the leaves of a tree in which every inner node has one child per token.

    Args:
        rewards: Reward of each answer.
        probabilities: Probability of each answer under the policy that samples; their sum is 1.
        answers: Tokens of each answer; by default each is one token, 0, 1, …

    Raises:
        ConfigError: Probabilities are not positive or do not sum to 1, or the answers are no tree.
    """

    rewards: tuple[float, ...]
    probabilities: tuple[float, ...]
    answers: tuple[Tokens, ...] = ()

    def __post_init__(self) -> None:
        if not self.answers:
            object.__setattr__(self, "answers", tuple((i,) for i in range(len(self.rewards))))
        if not len(self.rewards) == len(self.probabilities) == len(self.answers):
            counts = len(self.rewards), len(self.probabilities), len(self.answers)
            raise ConfigError(
                f"rewards, probabilities, answers: {counts} entries, not equally many."
            )
        if min(self.probabilities) <= 0 or abs(sum(self.probabilities) - 1) > 1e-9:
            raise ConfigError(
                f"probabilities: {self.probabilities}. Allowed: numbers above 0 that sum to 1."
            )
        for beginning, children in self._children.items():
            if children != set(range(self.num_tokens)) or beginning in self.answers:
                raise ConfigError(
                    f"answers: {self.answers} is no tree:"
                    f" after {beginning} come {sorted(children)}."
                    " Allowed: after each beginning that is no answer, every token."
                )

    @property
    def num_tokens(self) -> int:
        """Number of different tokens."""
        return 1 + max(token for answer in self.answers for token in answer)

    @cached_property
    def distributions(self) -> Mapping[Tokens, Sequence[float]]:
        """The probability of each token after each beginning of an answer."""
        return {
            beginning: [self._mass((*beginning, token)) / self._mass(beginning) for token in tokens]
            for beginning, tokens in self._children.items()
        }

    @cached_property
    def _children(self) -> Mapping[Tokens, set[int]]:
        children: dict[Tokens, set[int]] = {}
        for answer in self.answers:
            for i, token in enumerate(answer):
                children.setdefault(answer[:i], set()).add(token)
        return children

    def _mass(self, beginning: Tokens) -> float:
        """Probability of the answers with that beginning."""
        pairs = zip(self.answers, self.probabilities, strict=True)
        return sum(p for answer, p in pairs if answer[: len(beginning)] == beginning)


@dataclass(frozen=True)
class FiniteEnv:
    """Tasks of which a training step has one group each.

    The answers of all tasks are numbered in one row, those of the first task first.

    Args:
        tasks: The tasks; all have the same number of tokens.

    Raises:
        ConfigError: There is no task, or the numbers of tokens differ.

    >>> env = FiniteEnv((FiniteTask(rewards=(1.0, 0.0), probabilities=(0.25, 0.75)),))
    >>> env.expected_reward(env.logits).item()
    0.25
    """

    tasks: tuple[FiniteTask, ...]

    def __post_init__(self) -> None:
        if len({task.num_tokens for task in self.tasks}) != 1:
            counts = [task.num_tokens for task in self.tasks]
            raise ConfigError(f"tasks: {counts} tokens. Allowed: tasks with equally many tokens.")

    def answer_numbers(self, task: int) -> range:
        """The numbers of a task's answers."""
        counts = [len(t.answers) for t in self.tasks]
        start = sum(counts[:task])
        return range(start, start + counts[task])

    @cached_property
    def logits(self) -> Logits:
        """The table of the policy that samples."""
        rows = [row for task in self.tasks for row in task.distributions.values()]
        return torch.tensor(rows, dtype=torch.float64).log()

    @cached_property
    def rewards(self) -> Float[Tensor, "A"]:
        """The reward of each answer."""
        rewards = [reward for task in self.tasks for reward in task.rewards]
        return torch.tensor(rewards, dtype=torch.float64)

    @cached_property
    def tokens(self) -> Tensor:
        """The tokens of each answer (A, T); 0 after its end."""
        return self._to_matrix(answer for _, answer in self._answers())

    @cached_property
    def table_rows(self) -> Tensor:
        """The row of the policy's table that each token is sampled from (A, T)."""
        keys = [
            (i, beginning) for i, task in enumerate(self.tasks) for beginning in task.distributions
        ]
        number = {key: n for n, key in enumerate(keys)}
        return self._to_matrix(
            tuple(number[task, answer[:t]] for t in range(len(answer)))
            for task, answer in self._answers()
        )

    @cached_property
    def mask(self) -> Tensor:
        """True for the tokens of each answer (A, T)."""
        return self._to_matrix((1,) * len(answer) for _, answer in self._answers()).bool()

    def answer_logp(self, logits: Logits) -> Float[Tensor, "A"]:
        """Log-probability of each answer under a table of logits."""
        logp = logits.log_softmax(-1)[self.table_rows, self.tokens]
        return torch.where(self.mask, logp, 0.0).sum(1)

    def expected_reward(self, logits: Logits) -> Tensor:
        """Expected reward under a table of logits, the mean over tasks."""
        return (self.answer_logp(logits).exp() * self.rewards).sum() / len(self.tasks)

    def policy_gradient(self, logits: Logits) -> Logits:
        """The gradient of the expected reward in the table."""
        leaf = logits.detach().clone().requires_grad_()
        return torch.autograd.grad(self.expected_reward(leaf), leaf)[0]

    def moved_logits(self, step: float) -> Logits:
        """The table after a step along the gradient.

        Args:
            step: Largest change of a logit in each row of the table, in nats; rows whose gradient
                is 0 stay as they are.
        """
        gradient = self.policy_gradient(self.logits)
        largest = gradient.abs().amax(1, keepdim=True)
        return self.logits + step * torch.where(largest > 0, gradient / largest, 0.0)

    def _answers(self) -> Iterator[tuple[int, Tokens]]:
        return ((i, answer) for i, task in enumerate(self.tasks) for answer in task.answers)

    def _to_matrix(self, rows: Iterator[tuple[int, ...]]) -> Tensor:
        """Rows of different lengths as a matrix, filled with 0."""
        tensors = [torch.tensor(row) for row in rows]
        return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True)
