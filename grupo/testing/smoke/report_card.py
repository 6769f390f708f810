"""The report card of a method: property checks and smoke training."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from grupo.core.paper import Paper
from grupo.method import Method
from grupo.testing.smoke.check_properties import check_properties, property_claim, violation
from grupo.testing.smoke.grpo_difference import gradient_differs_from_grpo
from grupo.testing.smoke.run import SmokeResult, train_on_echo

MIN_GAIN = 0.1  # gain in accuracy, above that with flipped sign, that counts as learning


@dataclass(frozen=True)
class CheckResult:
    """A line of a report card.

    Args:
        status: "passed" or "FAILED" for a check, "yes" or "no" for an observation.
        name: Name of the check.
        message: The claim that was checked, or the violation.
        passed: False if the check failed; observations never fail.
    """

    status: str
    name: str
    message: str
    passed: bool = True


def report_card(method: Method, seed: int = 0, paper: Paper | None = None) -> Iterator[CheckResult]:
    """Check all properties of a method, then train it for seconds, with and without flipped sign.

    A violated property and an exception in training are failures. A method that gains nothing in
    this tiny environment does not fail: the result need not carry over to other environments. A
    method that is GRPO under its update plan fails only if it has a paper, which may declare it.

    Args:
        method: The method to check.
        seed: Seed of the smoke training.
        paper: The record of the method's file, if it has one.
    """
    for name, claim, problem in check_properties(method):
        yield _checked(name, claim, problem)
    yield _difference_from_grpo(method, paper)
    yield from _training_checks(method, seed)


def _checked(name: str, claim: str, problem: str) -> CheckResult:
    return CheckResult("FAILED" if problem else "passed", name, problem or claim, not problem)


def _difference_from_grpo(method: Method, paper: Paper | None) -> CheckResult:
    """A check of the paper's declaration; without a paper an observation."""
    condition = paper.equals_grpo_when if paper else ""
    problem = violation(partial(gradient_differs_from_grpo, equals_grpo_when=condition), method)
    name = gradient_differs_from_grpo.__name__
    claim = property_claim(gradient_differs_from_grpo)
    if condition:
        claim = f"The gradient is GRPO's when {condition}, as declared, and differs otherwise."
    if paper:
        return _checked(name, claim, problem)
    return CheckResult(_yes_or_no(not problem), name, problem or claim)


def _training_checks(method: Method, seed: int) -> Iterator[CheckResult]:
    # an exception of a user's component is a result of the check
    try:
        result = train_on_echo(method, seed=seed)
        learns = result.gain > MIN_GAIN
        yield CheckResult(_yes_or_no(learns), "learns", _accuracy_change(result))
        flipped = train_on_echo(method, seed=seed, flipped=True)
        from_signal = flipped.gain < result.gain - MIN_GAIN
        message = f"with its sign flipped, {_accuracy_change(flipped)}"
        yield CheckResult(_yes_or_no(from_signal), "gain_comes_from_signal", message)
    except Exception as error:
        message = f"it raised {type(error).__name__}: {error}"
        yield CheckResult("FAILED", "trains", message, False)


def _yes_or_no(flag: bool) -> str:
    return "yes" if flag else "no"


def _accuracy_change(result: SmokeResult) -> str:
    before = result.accuracy_before
    after = result.accuracy_after
    return f"the fraction of correct answers went from {before:.2f} to {after:.2f}"
