from grupo.algo.advantages import Center
from grupo.algo.aggregation import FixedLength, token_mean
from grupo.algo.losses import KL, Clip, Entropy
from grupo.method import Method, changes


def test_a_method_changes_what_differs_from_the_default():
    assert changes(Method()) == {}
    assert changes(Method().but(credit=Center(), weigh=token_mean)) == {
        "credit": "Center()",
        "weigh": "aggregation.token_mean",
    }


def test_a_method_may_be_compared_with_another():
    base = Method(weigh=FixedLength(4))
    assert changes(base.but(loss=Clip(0.1, 0.1)), base) == {"loss": "Clip(low=0.1, high=0.1)"}
    assert changes(Method(), base) == {"weigh": "aggregation.sequence_mean"}


def test_what_a_method_needs_is_derived_from_its_loss():
    assert Method().needs == frozenset()
    assert Method(loss=Clip() + 0.1 * KL() + 0.1 * Entropy()).needs == {"logp@ref", "entropy"}


def test_methods_compare_and_hash_by_value():
    assert len({Method(), Method(loss=Clip()), Method(loss=Clip(0.1))}) == 2
