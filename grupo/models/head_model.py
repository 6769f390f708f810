"""A frozen causal language model whose head scores rollouts."""

from collections.abc import Sequence

import torch

from grupo.core.aux_heads import ExportedHead, LinearHead
from grupo.core.dtypes import DtypeName
from grupo.core.types import Response, Rollout, Task
from grupo.core.validation import describe_task
from grupo.models.aux_heads import load_exported_head
from grupo.models.causal_lm import CausalLM
from grupo.models.chat_history import as_fork
from grupo.models.context import context_tokens
from grupo.models.prompt_logprobs import read_whole_contexts
from grupo.util.errors import ConfigError


class HeadModel:
    """A model and one of its heads, as `grupo export` writes them.

    Args:
        folder: Folder of the model.
        head: Name of the head.
        dtype: Type of computations.
        device: Name of the device, or "auto".
        tokens_per_microbatch: Tokens evaluated at once.

    Raises:
        ConfigError: The folder has no such model or no such head.
    """

    def __init__(
        self, folder: str, head: str, *, dtype: DtypeName, device: str, tokens_per_microbatch: int
    ) -> None:
        self.head = head
        spec = CausalLM(
            folder,
            dtype=dtype,
            device=device,
            max_new_tokens=1,
            tokens_per_microbatch=tokens_per_microbatch,
        )
        self.policy = spec.build()
        self.policy.module.requires_grad_(False)
        heads = self.policy.attach_heads((LinearHead(head),))
        load_exported_head(heads.heads[head], ExportedHead(folder, head))

    def check_prompts(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for the first task whose prompt the model's context does not hold."""
        limit = self.policy.prompt_limit
        for task in tasks:
            if not limit.surely_fits(task) and (excess := limit.describe_excess(task)):
                raise ConfigError(
                    f"model: {self.policy.name!r} with the head {self.head!r}: the prompt of"
                    f" {describe_task(task)} has {excess} of its tokenizer. Allowed: {limit.room},"
                    " so that its context has room for an answer. Leave out long tasks, or take a"
                    " reward model with a longer context."
                )

    def scores(self, rollouts: Sequence[Rollout]) -> list[float | Exception]:
        """The score of each rollout; an error for one that the context does not hold."""
        rows = [context_tokens(self._encode(rollout)) for rollout in rollouts]
        fitting = [i for i, row in enumerate(rows) if len(row) <= self.policy.context_length]
        values = dict(zip(fitting, self._predict([rows[i][:-1] for i in fitting]), strict=True))
        return [values[i] if i in values else self._too_long(row) for i, row in enumerate(rows)]

    @torch.no_grad()
    def _predict(self, contexts: Sequence[tuple[int, ...]]) -> list[float]:
        """Output of the head after each context."""
        if not contexts:
            return []
        policy = self.policy
        with policy.autocast():
            states = read_whole_contexts(policy.evaluator, contexts, policy.tokens_per_microbatch)
            return policy.aux_heads.predict(self.head, states.hidden).tolist()

    def _encode(self, rollout: Rollout) -> Rollout:
        """The rollout in this model's tokens."""
        tokenizer = self.policy.chat_tokenizer
        encoded = Rollout()
        for observation, response in rollout.turns:
            observed, rewrites = tokenizer.encode_turn(encoded, observation)
            items = tokenizer.encode_answer(response.text)
            response = Response(items, (0.0,) * len(items), observed, response.text, sampled=False)
            response = as_fork(response) if rewrites else response
            encoded = encoded.append_turn(observation, response)
        return encoded

    def _too_long(self, row: Sequence[object]) -> ConfigError:
        return ConfigError(
            f"the rollout has {len(row)} tokens, and the model {self.policy.name!r} with the head"
            f" {self.head!r} a context of {self.policy.context_length}"
        )
