"""What can be wrong with a run: small pure functions from what it left behind to findings."""

from grupo.report.checks.finding import Finding
from grupo.report.checks.run_data import RunData

__all__ = ["Finding", "RunData"]
