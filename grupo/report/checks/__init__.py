"""Checks of `grupo doctor`: pure functions from the data of a run to findings."""

from grupo.report.checks.finding import Finding
from grupo.report.checks.run_data import RunData

__all__ = ["Finding", "RunData"]
