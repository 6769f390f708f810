"""Dead experts are a finding when enough tokens show them."""

import pytest

from grupo.report.checks.run_data import RunData
from grupo.report.doctor import diagnose
from tests.helpers.run_evidence import run


def with_dead_experts(last: float, tokens: float) -> RunData:
    steps = [
        {**step, "router/dead_experts": last if i > 4 else 0.02, "tokens/backpropagated": tokens}
        for i, step in enumerate(run().steps)
    ]
    return RunData(tuple(steps), run().groups)


def test_a_collapsed_router_is_named_with_its_numbers():
    (finding,) = diagnose(with_dead_experts(0.4, 5_000.0))
    assert (finding.name, finding.severity) == ("dead experts", "warning")
    assert "no token of an update was routed to 40.0% of the experts; 2.0% at the first step" in (
        finding.details
    )


@pytest.mark.parametrize(("last", "tokens"), [(0.05, 5_000.0), (0.4, 300.0)])
def test_few_dead_experts_or_few_tokens_are_no_finding(last, tokens):
    assert diagnose(with_dead_experts(last, tokens)) == []
