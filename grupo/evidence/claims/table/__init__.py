"""The table of claims, fixed before their arms were run.

length       length bias, brevity and limits
exploration  pass@k, entropy and learning without labels
updates      several updates per step, clips, and engines that differ from the trainer
credit       long rollouts: turns, states and value functions
rewards      noise, difficulty, groups, curricula and several reward terms
"""

from collections.abc import Mapping

from grupo.evidence.claims.claim import Claim
from grupo.evidence.claims.table import credit, exploration, length, rewards, updates

ALL_CLAIMS: tuple[Claim, ...] = (
    *length.CLAIMS,
    *exploration.CLAIMS,
    *updates.CLAIMS,
    *credit.CLAIMS,
    *rewards.CLAIMS,
)
CLAIMS: Mapping[str, Claim] = {claim.key: claim for claim in ALL_CLAIMS}

__all__ = ["ALL_CLAIMS", "CLAIMS"]
