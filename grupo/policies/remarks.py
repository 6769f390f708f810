"""What is said of a policy before it works: what is slower here than one might expect."""

from grupo.policies.causal_lm import CausalPolicy
from grupo.policies.loading import has_bfloat16

EMULATED = "This processor has no instructions for bfloat16: float32 is many times as fast."


def remarks(policy: CausalPolicy) -> list[str]:
    """A line for each."""
    emulated = policy.spec.dtype == "bfloat16" and not has_bfloat16(policy.plain.device)
    return [line for line in (policy.reader.remark, EMULATED * emulated) if line]
