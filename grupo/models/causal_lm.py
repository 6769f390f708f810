"""Causal language models: an action is a token."""

from collections.abc import Sequence

from grupo.core.component import piece
from grupo.core.signal_names import COMPARISONS, OF_GROUPS
from grupo.core.validation import Rule, check, of_answers
from grupo.inference.sampling_params import Sampling
from grupo.inference.vllm import Vllm
from grupo.models import loading
from grupo.models.causal_policy import CausalPolicy
from grupo.models.loading import Lora
from grupo.models.spec import OTHERS
from grupo.models.token_statistics import MEASURES


@piece
class CausalLM:
    """Any causal language model of transformers, by folder or hub name.

    `limit` is how many tokens an answer may have and `stop` the texts that end one early; `chat`
    wraps plain prompts as a user's message; `budget` is how many tokens a micro-batch holds, those
    that its rows begin with alike counted once; `dtype` is what is computed in, float32 where a
    device would but imitate it; `engine` is a server to sample from, None: this process samples.
    """

    model: str
    lora: Lora | None = None
    dtype: str = "float32"
    device: str = "auto"
    sampling: Sampling = Sampling()
    limit: int = 256
    stop: tuple[str, ...] = ()
    chat: bool = False
    budget: int = 16384
    checkpointing: bool = False
    engine: Vllm | None = None

    @property
    def signals(self) -> tuple[str, ...]:
        """What its policy can say of a token."""
        return (*MEASURES, *COMPARISONS, *OF_GROUPS)

    @property
    def others(self) -> tuple[str, ...]:
        """Who is always there."""
        return OTHERS

    @property
    def field_rules(self) -> Sequence[Rule]:
        """What its fields may be."""
        known = " or ".join(loading.DTYPES)
        dtype = ("dtype", self.dtype, self.dtype in loading.DTYPES, known)
        return [*of_answers(self.limit, self.budget, self.stop), dtype]

    def check(self) -> None:
        """Refuse fields that cannot be, and a device that is not here."""
        check(self.field_rules)
        loading.device_of(self.device)

    def build(self) -> "CausalPolicy":
        """Load the model and its tokenizer; raises `Refused` when they cannot be used."""
        self.check()
        return CausalPolicy(self)
