"""The size of a training step in tokens, from its recipe, for the estimates of memory and time."""

from dataclasses import dataclass

from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe

DEFAULT_GROUP_SIZE = 8  # of samplers that do not fix it in advance


@dataclass(frozen=True)
class StepSize:
    """Numbers of a training step.

    Args:
        prompts: Prompts per step.
        rollouts: Rollouts per step.
        prompt: Tokens of a prompt.
        answer: Tokens of the longest answer.
        generates: Whether the policy generates the answers.
    """

    prompts: int
    rollouts: int
    prompt: int
    answer: int
    generates: bool = True

    @property
    def tokens(self) -> int:
        """Tokens of all rollouts; those of one group share their prompt."""
        return self.prompts * self.prompt + self.answer_tokens

    @property
    def answer_tokens(self) -> int:
        """Tokens of all answers."""
        return self.rollouts * self.answer


def step_size(recipe: Recipe, prompt: int, context_length: int) -> StepSize:
    """The size of a step with prompts of `prompt` tokens whose answers reach their limit."""
    policy = recipe.policy
    assert isinstance(policy, CausalLM)
    rollouts = recipe.prompts_per_step * (recipe.group_size or DEFAULT_GROUP_SIZE)
    answer = min(policy.max_new_tokens, context_length - prompt)
    return StepSize(recipe.prompts_per_step, rollouts, prompt, answer)


def supervised_step_size(recipe: Recipe, mean_row: int) -> StepSize:
    """The size of a step of demonstrations of `mean_row` tokens, all of which may be trained on."""
    rows = recipe.prompts_per_step
    return StepSize(rows, rows, 0, mean_row, generates=False)
