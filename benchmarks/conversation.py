"""Several turns in one rollout, as TRL's `rollout_func` lets a user write them."""

from collections.abc import Sequence
from typing import Any

from trl import GRPOTrainer

from benchmarks.workloads import Workload, turn_text

Tokens = list[int]


class RolloutFunction:
    """Plays the turns of a workload; every turn reads the whole context, as `generate` does.

    `own` are the tokens of the policy alone, by which it is judged.
    """

    def __init__(self, workload: Workload) -> None:
        self.workload = workload

    def __call__(self, prompts: Sequence[str], trainer: GRPOTrainer) -> dict[str, Any]:
        read = [self._tokens(trainer, prompt) for prompt in prompts]
        said: list[Tokens] = [[] for _ in prompts]
        mask: list[Tokens] = [[] for _ in prompts]
        for turn in range(self.workload.turns):
            if turn:
                texts = [turn_text(self.workload, prompt, turn) for prompt in prompts]
                _append_tokens(
                    said, mask, [self._tokens(trainer, text) for text in texts], mask_value=0
                )
            contexts = [before + after for before, after in zip(read, said, strict=True)]
            answers, _ = trainer._generate_single_turn(contexts, None, {}, 1)
            _append_tokens(said, mask, answers, mask_value=1)
        own = [[t for t, m in zip(*row, strict=True) if m] for row in zip(said, mask, strict=True)]
        played = {"prompt_ids": read, "completion_ids": said, "logprobs": None}
        return {**played, "env_mask": mask, "own": own}

    def _tokens(self, trainer: GRPOTrainer, text: str) -> Tokens:
        return trainer.processing_class(text)["input_ids"]


def _append_tokens(
    said: list[Tokens], mask: list[Tokens], more: list[Tokens], mask_value: int
) -> None:
    for row, marks, tokens in zip(said, mask, more, strict=True):
        row += tokens
        marks += [mask_value] * len(tokens)
