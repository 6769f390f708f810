"""The concentration of each prompt: how similar the directions of its hidden states are."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

import torch
from torch import Tensor

from grupo.core.component import component
from grupo.core.ranges import NonNegativeFloat, PositiveInt
from grupo.core.types import Rollout, Task
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.concentration import cross_cosine, pair_cosine
from grupo.tasks.base import TaskSource


@component
class PromptConcentration:
    """The tasks of a source with the column `concentration`, which a policy's hidden states give.

    concentration = mean cosine between different tokens of the question + `prefix_coef` times that
    between its tokens and those before it. The tokens before the question are those with which all
    prompts begin, such as a system message. Nothing is generated. GAIN-RL (arXiv:2506.02281).

    Args:
        source: The tasks.
        policy: The model whose last hidden states are read.
        prefix_coef: Weight of the second cosine; the paper adds them, its code weighs it by 8.
        batch_size: Prompts that are evaluated at once.
    """

    source: TaskSource
    policy: CausalLM
    prefix_coef: NonNegativeFloat = 1.0
    batch_size: PositiveInt = 32

    def load(self) -> Sequence[Task]:
        tasks = list(self.source.load())
        policy = self.policy.build()
        scores = self._scores(policy, tasks)
        return [
            replace(task, columns={**task.columns, "concentration": score})
            for task, score in zip(tasks, scores, strict=True)
        ]

    def _scores(self, policy: CausalPolicy, tasks: Sequence[Task]) -> Iterator[float]:
        prompts = [policy.encode_observation(Rollout(), task.prompt) for task in tasks]
        prefix = common_prefix(prompts)
        for first in range(0, len(prompts), self.batch_size):
            for hidden in prompt_states(policy, prompts[first : first + self.batch_size]):
                before, question = hidden[:prefix].double(), hidden[prefix:].double()
                crossed = self.prefix_coef * cross_cosine(question, before)
                yield float(pair_cosine(question) + crossed)


def common_prefix(prompts: Sequence[Sequence[int]]) -> int:
    """Number of tokens with which all prompts begin; 0 for a single prompt.

    >>> common_prefix([[7, 8, 1], [7, 8, 2, 1]]), common_prefix([[7, 8]])
    (2, 0)
    """
    if len(prompts) < 2:
        return 0
    columns = zip(*prompts, strict=False)
    return sum(1 for _ in takewhile(lambda tokens: len(set(tokens)) == 1, columns))


@torch.no_grad()
def prompt_states(policy: CausalPolicy, prompts: Sequence[Sequence[int]]) -> Iterator[Tensor]:
    """The last hidden states (n, H) of the tokens of each prompt."""
    length = torch.tensor([len(prompt) for prompt in prompts])
    token = torch.zeros(len(prompts), int(length.max()), dtype=torch.long)
    for row, prompt in enumerate(prompts):
        token[row, : len(prompt)] = torch.tensor(prompt)
    row = torch.arange(len(prompts)).repeat_interleave(length)
    column = torch.cat([torch.arange(n) for n in length.tolist()])
    with policy.autocast():
        hidden = policy.evaluator.hidden_states(token, length, row, column).values
    yield from hidden.cpu().split(length.tolist())
