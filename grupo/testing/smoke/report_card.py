"""The report card of a method."""

from collections.abc import Iterator
from dataclasses import dataclass

from grupo.method import Method
from grupo.testing.smoke.check_properties import check
from grupo.testing.smoke.run import Trial, tried

MARGIN = 0.1  # of the truth: what a method gains that its signal turned round does not


@dataclass(frozen=True)
class Line:
    """One thing that was looked at: a word for what came of it, what it is, what was found."""

    word: str
    name: str
    found: str
    good: bool = True


def card(method: Method, seed: int = 0) -> Iterator[Line]:
    """The laws, gradients among them, then a training of seconds and the same turned round.

    A law that is broken is not good, nor is a training that raises. That a method gains nothing on
    one tiny world is said, and says nothing of it elsewhere.
    """
    for name, said, broken in check(method):
        yield Line("BROKEN" if broken else "holds", name, broken or said, not broken)
    yield from _training(method, seed)


def _training(method: Method, seed: int) -> Iterator[Line]:
    # what a user's piece raises is what the card has to say of it
    try:
        one = tried(method, seed=seed)
        yield Line(_word(one.gain > MARGIN), "it_learns", f"{_course(one)}")
        other = tried(method, seed=seed, turned=True)
        said = f"its signal turned round, {_course(other)}"
        yield Line(_word(other.gain < one.gain - MARGIN), "it_is_the_signal", said)
    except Exception as error:
        yield Line("BROKEN", "it_trains", f"it raised {type(error).__name__}: {error}", False)


def _word(well: bool) -> str:
    return "yes" if well else "no"


def _course(trial: Trial) -> str:
    return f"the share of right answers went from {trial.before:.2f} to {trial.after:.2f}"
