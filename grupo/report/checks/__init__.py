"""What can be wrong with a run: small pure functions from what it left behind to findings."""

from grupo.report.checks.evidence import Evidence
from grupo.report.checks.finding import Finding

__all__ = ["Evidence", "Finding"]
