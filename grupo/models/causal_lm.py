"""Causal language models in recipes; an action consists of tokens."""

from collections.abc import Sequence

from grupo.core.component import component
from grupo.core.dtypes import DTYPES
from grupo.core.signal_names import COMPARISONS, GROUP_SIGNALS
from grupo.core.validation import Constraint, check_constraints, generation_constraints
from grupo.inference.sampling_params import Sampling
from grupo.inference.vllm import Vllm
from grupo.models import loading
from grupo.models.base import BUILTIN_MODELS
from grupo.models.causal_policy import CausalPolicy
from grupo.models.loading import Lora
from grupo.models.token_statistics import TOKEN_SIGNALS


@component
class CausalLM:
    """A causal language model of transformers.

    Args:
        model: folder or hub name.
        lora: low-rank adapters to train instead of all weights. Default: all weights.
        dtype: compute type, "float32" or "bfloat16"; float32 where the device would emulate it.
        device: "auto" (the first GPU, otherwise the CPU), "cpu", "cuda" or "cuda:0".
        sampling: temperature and truncation of the token distribution.
        max_new_tokens: maximal length of an answer, in tokens.
        stop_strings: strings that end an answer, besides the end token.
        apply_chat_template: wrap plain prompts as a user message.
        tokens_per_microbatch: tokens evaluated at once; prefixes that rows share count once.
        gradient_checkpointing: recompute activations in the backward pass to save memory.
        engine: server that generates. Default: this process generates.
    """

    model: str
    lora: Lora | None = None
    dtype: str = "float32"
    device: str = "auto"
    sampling: Sampling = Sampling()
    max_new_tokens: int = 256
    stop_strings: tuple[str, ...] = ()
    apply_chat_template: bool = False
    tokens_per_microbatch: int = 16384
    gradient_checkpointing: bool = False
    engine: Vllm | None = None

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the signals of a token."""
        return (*TOKEN_SIGNALS, *COMPARISONS, *GROUP_SIGNALS)

    @property
    def builtin_models(self) -> tuple[str, ...]:
        """Models that need no configuration."""
        return BUILTIN_MODELS

    @property
    def constraints(self) -> Sequence[Constraint]:
        """Allowed values of the fields."""
        allowed_dtypes = " or ".join(DTYPES)
        return [
            *generation_constraints(
                self.max_new_tokens, self.tokens_per_microbatch, self.stop_strings
            ),
            ("dtype", self.dtype, self.dtype in DTYPES, allowed_dtypes),
        ]

    def check(self) -> None:
        """Raise `ConfigError` for values that are not allowed and for a missing device."""
        check_constraints(self.constraints)
        loading.resolve_device(self.device)

    def build(self) -> "CausalPolicy":
        """Load the model and its tokenizer; raise `ConfigError` if they cannot be used."""
        self.check()
        return CausalPolicy(self)
