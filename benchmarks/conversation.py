"""Multi-turn rollouts for TRL, as a `rollout_func`."""

from collections.abc import Sequence
from itertools import compress
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
                observations = [self._tokens(trainer, text) for text in texts]
                _append_tokens(completions, mask, observations, mask_value=0)
            pairs = zip(prompt_ids, completions, strict=True)
            contexts = [prompt + completion for prompt, completion in pairs]
            answers, _ = trainer._generate_single_turn(contexts, None, {}, 1)
            _append_tokens(completions, mask, answers, mask_value=1)
        rows = zip(completions, mask, strict=True)
        return {
            "prompt_ids": prompt_ids,
            "completion_ids": completions,
            "logprobs": None,
            "env_mask": mask,
            "policy_ids": [list(compress(tokens, row_mask)) for tokens, row_mask in rows],
        }

    def _tokens(self, trainer: GRPOTrainer, text: str) -> Tokens:
        return trainer.processing_class(text)["input_ids"]


def _append_tokens(
    completions: list[Tokens], mask: list[Tokens], new_tokens: list[Tokens], mask_value: int
) -> None:
    for completion, row_mask, tokens in zip(completions, mask, new_tokens, strict=True):
        completion += tokens
        row_mask += [mask_value] * len(tokens)
