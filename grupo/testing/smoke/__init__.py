"""Smoke training: every method trained for seconds in a tiny environment, and with flipped sign.

A language model of 2,864 parameters, which is already right now and then, has to repeat the digit
in its prompt. The environment provides every signal, reward term and column that a method of the
library reads.
"""

from grupo.testing.smoke.report_card import CheckResult, report_card
from grupo.testing.smoke.run import SmokeResult, train_on_echo

__all__ = ["CheckResult", "SmokeResult", "report_card", "train_on_echo"]
