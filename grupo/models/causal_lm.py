"""Causal language models in recipes; a response consists of tokens."""

from grupo.core.component import component
from grupo.models.causal_policy import CausalPolicy
from grupo.models.causal_spec import CausalSpec


@component
class CausalLM(CausalSpec):
    """A causal language model of transformers, with the fields of `CausalSpec`."""

    def build(self) -> CausalPolicy:
        """Load the model and its tokenizer; raise `ConfigError` if they cannot be used."""
        self.check()
        return CausalPolicy(self)
