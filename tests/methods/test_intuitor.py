from math import log

import pytest

from grupo.losses import KL, Clip
from grupo.methods.intuitor import intuitor
from grupo.sampling import Independent
from grupo.testing import batch_of


def test_the_reward_is_the_mean_certainty_of_what_was_done():
    seen = {"self_certainty": [[1.0, 99.0], [2.0, 4.0]]}
    batch = batch_of(group=[0, 0], reward=[5.0, 5.0], length=[1, 2], seen=seen)
    advantage = intuitor().credit(batch.reward, batch).tolist()
    # means 1 and 3
    assert advantage == pytest.approx([-(0.5**0.5), 0.5**0.5], abs=1e-6)


def test_a_constant_in_certainty_cancels():
    # with and without log |V|, |V| = 7
    plain = {"self_certainty": [[1.0], [2.0], [4.0]]}
    shifted = {"self_certainty": [[x[0] - log(7)] for x in plain["self_certainty"]]}
    a, b = (batch_of(group=[0, 0, 0], seen=seen) for seen in (plain, shifted))
    credit = intuitor().credit
    assert credit(a.reward, a).tolist() == pytest.approx(credit(b.reward, b).tolist())


def test_the_defaults_are_the_papers():
    assert intuitor().sample == Independent(7)
    assert intuitor().loss == Clip(0.2, 0.2) + 0.005 * KL()
    assert intuitor().needs == {"self_certainty", "logp@ref"}
