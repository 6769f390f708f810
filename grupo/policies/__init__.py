"""What is trained: things that act and can say how likely their actions were."""

from grupo.policies.causal_lm import CausalLM

__all__ = ["CausalLM"]
