"""Rows that are decoded together: their newest tokens, and a step that samples the next ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from grupo.inference.sampling_params import Sampling
from grupo.kernels.backend import Backend
from grupo.kernels.decode_state import DecodeState
from grupo.kernels.lm_head import LMHead
from grupo.kernels.prefix_cache import PrefixCache
from grupo.util.rng import uniform


@dataclass(frozen=True)
class DecodeConfig:
    """The model, prompts and limits that all rows of a batch share.

    Args:
        backend: evaluates the model.
        lm_head: the model's head.
        prefix_cache: holds the keys and values of the prompts.
        sampling: the distribution to sample from.
        max_new_tokens: the most tokens of an answer.
        context_length: the most tokens of a prompt and its answer.
    """

    backend: Backend
    lm_head: LMHead
    prefix_cache: PrefixCache
    sampling: Sampling
    max_new_tokens: int
    context_length: int


@dataclass(frozen=True)
class RowTensors:
    """Tensors with one entry for each row.

    Args:
        rng_key: of the random stream of the row's request.
        prompt_length: number of tokens of the request.
        first_position: position of the first generated token.
        token: the newest token, which was sampled but not evaluated.
        logp: its log-probability.
    """

    rng_key: Int[Tensor, "R"]
    prompt_length: Int[Tensor, "R"]
    first_position: Int[Tensor, "R"]
    token: Int[Tensor, "R"]
    logp: Float[Tensor, "R"]


class DecodeRows(Protocol):
    """Rows that are decoded together."""

    @property
    def state(self) -> DecodeState:
        """Keys and values of the rows."""
        ...

    def append(
        self, slots: Sequence[Sequence[int]], prefixes: Sequence[int], new: RowTensors
    ) -> None:
        """Adds rows whose prompts were prefilled, as `DecodeState.add_rows`."""
        ...

    def select(self, rows: Sequence[int]) -> None:
        """Keeps the given rows."""
        ...

    def step(self) -> None:
        """Evaluates the newest token of every row, and samples the next one."""
        ...

    def read(self) -> tuple[list[float], list[float]]:
        """The newest tokens and their log-probabilities: the program waits for the device."""
        ...


def sampled_rows(
    sampling: Sampling,
    logits: Float[Tensor, "R V"],
    rng_key: Int[Tensor, "R"],
    prompt_length: Int[Tensor, "R"],
    first_position: Int[Tensor, "R"],
    num_generated: Int[Tensor, "R"] | int = 0,
) -> RowTensors:
    """Rows with a token sampled from the logits, after `num_generated` generated tokens."""
    u = uniform(rng_key, prompt_length + num_generated)
    return RowTensors(rng_key, prompt_length, first_position, *sampling.sample(logits, u))


class DynamicRows:
    """Rows whose tensors have the sizes of the batch: each step may have other shapes.

    Args:
        config: of the batch.
    """

    def __init__(self, config: DecodeConfig) -> None:
        self.config = config
        device = config.backend.model.device
        self.state = DecodeState(config.prefix_cache, config.max_new_tokens, device)
        self.tensors: RowTensors | None = None

    def append(
        self, slots: Sequence[Sequence[int]], prefixes: Sequence[int], new: RowTensors
    ) -> None:
        self.state.add_rows(slots, prefixes)
        if self.tensors:
            pairs = zip(vars(self.tensors).values(), vars(new).values(), strict=True)
            new = RowTensors(*map(torch.cat, pairs))
        self.tensors = new

    def select(self, rows: Sequence[int]) -> None:
        index = torch.tensor(rows, dtype=torch.long, device=self.config.backend.model.device)
        self.tensors = RowTensors(*(x[index] for x in vars(self._tensors()).values()))
        self.state.select_rows(rows)

    def step(self) -> None:
        config, rows, state = self.config, self._tensors(), self.state
        # a finished row may have reached the end of the context
        position = rows.first_position + state.num_generated
        position = position.clamp(max=config.context_length - 1)
        logits = config.backend.decode(rows.token, position, state, config.lm_head)
        state.advance()
        self.tensors = sampled_rows(
            config.sampling,
            logits,
            rows.rng_key,
            rows.prompt_length,
            rows.first_position,
            state.num_generated,
        )

    def read(self) -> tuple[list[float], list[float]]:
        rows = self._tensors()
        # float64 holds both without rounding
        token, logp = torch.stack([rows.token.double(), rows.logp.float().double()]).tolist()
        return token, logp

    def _tensors(self) -> RowTensors:
        assert self.tensors, "rows are appended first"
        return self.tensors
