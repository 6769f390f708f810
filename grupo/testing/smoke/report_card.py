"""The report card of a method."""

from collections.abc import Iterator
from dataclasses import dataclass

from grupo.method import Method
from grupo.testing.smoke.check_properties import check_properties
from grupo.testing.smoke.run import SmokeResult, train_on_echo

MIN_GAIN = 0.1  # of the truth: what a method gains that its signal turned round does not


@dataclass(frozen=True)
class CheckResult:
    """One thing that was looked at: a word for what came of it, what it is, what was found."""

    status: str
    name: str
    message: str
    passed: bool = True


def report_card(method: Method, seed: int = 0) -> Iterator[CheckResult]:
    """The laws, gradients among them, then a training of seconds and the same turned round.

    A law that is broken is not good, nor is a training that raises. That a method gains nothing on
    one tiny world is said, and says nothing of it elsewhere.
    """
    for name, said, broken in check_properties(method):
        yield CheckResult("BROKEN" if broken else "holds", name, broken or said, not broken)
    yield from _training_checks(method, seed)


def _training_checks(method: Method, seed: int) -> Iterator[CheckResult]:
    # what a user's piece raises is what the card has to say of it
    try:
        one = train_on_echo(method, seed=seed)
        yield CheckResult(_yes_or_no(one.gain > MIN_GAIN), "it_learns", f"{_accuracy_change(one)}")
        other = train_on_echo(method, seed=seed, flipped=True)
        said = f"its signal turned round, {_accuracy_change(other)}"
        yield CheckResult(_yes_or_no(other.gain < one.gain - MIN_GAIN), "it_is_the_signal", said)
    except Exception as error:
        yield CheckResult(
            "BROKEN", "it_trains", f"it raised {type(error).__name__}: {error}", False
        )


def _yes_or_no(passed: bool) -> str:
    return "yes" if passed else "no"


def _accuracy_change(result: SmokeResult) -> str:
    return f"the share of right answers went from {result.accuracy_before:.2f} to {result.accuracy_after:.2f}"
