"""Several turns in one rollout, as TRL's `rollout_func` lets a user write them."""

from collections.abc import Sequence
from typing import Any

from trl import GRPOTrainer

from benchmarks.workloads import Workload, turn_text

Tokens = list[int]


class RolloutFunction:
    """Generates the turns of a workload; every turn prefills the whole context, as `generate` does.

    `policy_ids` are the tokens that the policy generated, which the reward scores.
    """

    def __init__(self, workload: Workload) -> None:
        self.workload = workload

    def __call__(self, prompts: Sequence[str], trainer: GRPOTrainer) -> dict[str, Any]:
        prompt_ids = [self._tokens(trainer, prompt) for prompt in prompts]
        completions: list[Tokens] = [[] for _ in prompts]
        mask: list[Tokens] = [[] for _ in prompts]
        for turn in range(self.workload.turns):
            if turn:
                texts = [turn_text(self.workload, prompt, turn) for prompt in prompts]
                _append_tokens(
                    completions, mask, [self._tokens(trainer, text) for text in texts], mask_value=0
                )
            contexts = [
                before + after for before, after in zip(prompt_ids, completions, strict=True)
            ]
            answers, _ = trainer._generate_single_turn(contexts, None, {}, 1)
            _append_tokens(completions, mask, answers, mask_value=1)
        policy_ids = [
            [t for t, m in zip(*row, strict=True) if m]
            for row in zip(completions, mask, strict=True)
        ]
        played = {"prompt_ids": prompt_ids, "completion_ids": completions, "logprobs": None}
        return {**played, "env_mask": mask, "policy_ids": policy_ids}

    def _tokens(self, trainer: GRPOTrainer, text: str) -> Tokens:
        return trainer.processing_class(text)["input_ids"]


def _append_tokens(
    completions: list[Tokens], mask: list[Tokens], more: list[Tokens], mask_value: int
) -> None:
    for row, marks, tokens in zip(completions, mask, more, strict=True):
        row += tokens
        marks += [mask_value] * len(tokens)
