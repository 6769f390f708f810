"""The section about oracle uses of mechanisms on the page of the claims."""

from collections.abc import Mapping, Sequence

from grupo.compare.table_formats import markdown
from grupo.evidence.claims.claim import Claim
from grupo.evidence.claims.comparisons import Verdict
from grupo.evidence.claims.page_format import difference_text, method_link, number_text
from grupo.evidence.claims.verdicts import ClaimResult

TEXT = """\
## What a mechanism could gain

A claim may be not told apart because the environment leaves its mechanism nothing to gain. An
oracle use takes the place of the mechanism and knows the environment: credit to turns and tokens
knows which actions an optimal policy takes. If the oracle use does not win against the baseline of
the claim, on the claim's metric and by the same test, the verdict is *nothing to gain*. An oracle
use is defined for {defined} of the {undecided} claims whose first comparison decided nothing; of
the others it is not known whether the environment leaves their mechanism something to gain.
"""
HEADER = ("method", "environment", "metric", "oracle use", "baseline", "difference", "pairs")


def oracle_section(claims: Sequence[Claim], results: Mapping[str, ClaimResult]) -> str:
    """The rule, and the gain of each oracle use."""
    undecided = [claim for claim in claims if results[claim.key].first is Verdict.UNDECIDED]
    rows = [
        [
            method_link(claim.key),
            f"[{claim.setting}](#{claim.setting})",
            f"`{claim.metric}` {claim.direction}",
            number_text(use.arm_mean),
            number_text(use.baseline_mean),
            difference_text(use.difference),
            str(use.pairs),
        ]
        for claim in undecided
        if (use := results[claim.key].oracle_use)
    ]
    text = TEXT.format(defined=len(rows), undecided=len(undecided))
    return "\n".join([text, markdown([[*HEADER], *rows])])
