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
    """The tasks of a source, with a column `concentration` that is computed from a policy.

    concentration = c + `prefix_coef` * d, where c and d are mean cosines between last hidden states
    of tokens. c is the mean over pairs of different tokens of the question. d is the mean over
    pairs of a token of the question and a token before the question. The tokens before the question
    are those with which all prompts begin, such as a system message. Nothing is generated. GAIN-RL
    (arXiv:2506.02281).

    Args:
        source: The tasks.
        policy: The model whose last hidden states are read.
        prefix_coef: Weight of d. It is 1 in the paper, and 8 in its code.
        batch_size: Number of prompts in one forward pass.
    """

    source: TaskSource
    policy: CausalLM
    prefix_coef: NonNegativeFloat = 1.0
    batch_size: PositiveInt = 32

    def load(self) -> Sequence[Task]:
        tasks = list(self.source.load())
        policy = self.policy.build()
        concentrations = self._concentrations(policy, tasks)
        return [
            replace(task, columns={**task.columns, "concentration": value})
            for task, value in zip(tasks, concentrations, strict=True)
        ]

    def _concentrations(self, policy: CausalPolicy, tasks: Sequence[Task]) -> Iterator[float]:
        prompts = [policy.encode_observation(Rollout(), task.prompt) for task in tasks]
        prefix_length = common_prefix(prompts)
        for start in range(0, len(prompts), self.batch_size):
            for hidden in prompt_states(policy, prompts[start : start + self.batch_size]):
                prefix, question = hidden.double().tensor_split([prefix_length])
                prefix_cosine = cross_cosine(question, prefix)
                yield float(pair_cosine(question) + self.prefix_coef * prefix_cosine)


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
