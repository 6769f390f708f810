"""What is trained: things that act and can say how likely their actions were."""

from grupo.policies.causal_lm import CausalLM
from grupo.policies.flow import Flow
from grupo.policies.masked_diffusion import MaskedDiffusion
from grupo.policies.soft_lm import SoftLM

__all__ = ["CausalLM", "Flow", "MaskedDiffusion", "SoftLM"]
