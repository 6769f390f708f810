"""Causal language models: an action is a token."""

from collections.abc import Sequence

from grupo.core.component import component
from grupo.core.signal_names import COMPARISONS, GROUP_SIGNALS
from grupo.core.validation import Constraint, check_constraints, generation_constraints
from grupo.inference.sampling_params import Sampling
from grupo.inference.vllm import Vllm
from grupo.models import loading
from grupo.models.causal_policy import CausalPolicy
from grupo.models.loading import Lora
from grupo.models.spec import BUILTIN_MODELS
from grupo.models.token_statistics import TOKEN_SIGNALS


@component
class CausalLM:
    """Any causal language model of transformers, by folder or hub name.

    `limit` is how many tokens an answer may have and `stop` the texts that end one early; `apply_chat_template`
    wraps plain prompts as a user's message; `budget` is how many tokens a micro-batch holds, those
    that its rows begin with alike counted once; `dtype` is what is computed in, float32 where a
    device would but imitate it; `engine` is a server to sample from, None: this process samples.
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
        """What its policy can say of a token."""
        return (*TOKEN_SIGNALS, *COMPARISONS, *GROUP_SIGNALS)

    @property
    def builtin_models(self) -> tuple[str, ...]:
        """Who is always there."""
        return BUILTIN_MODELS

    @property
    def constraints(self) -> Sequence[Constraint]:
        """What its fields may be."""
        known = " or ".join(loading.DTYPES)
        dtype = ("dtype", self.dtype, self.dtype in loading.DTYPES, known)
        return [
            *generation_constraints(
                self.max_new_tokens, self.tokens_per_microbatch, self.stop_strings
            ),
            dtype,
        ]

    def check(self) -> None:
        """Refuse fields that cannot be, and a device that is not here."""
        check_constraints(self.constraints)
        loading.resolve_device(self.device)

    def build(self) -> "CausalPolicy":
        """Load the model and its tokenizer; raises `ConfigError` when they cannot be used."""
        self.check()
        return CausalPolicy(self)
