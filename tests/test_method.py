from grupo.algo.advantages import Center
from grupo.algo.aggregation import ConstantLength, token_mean
from grupo.algo.losses import KL, Clip, Entropy
from grupo.method import Method, changed_slots


def test_changed_slots_differ_from_the_default():
    assert changed_slots(Method()) == {}
    assert changed_slots(Method().replace(advantage=Center(), aggregation=token_mean)) == {
        "advantage": "Center()",
        "aggregation": "aggregation.token_mean",
    }


def test_changed_slots_against_another_method():
    base = Method(aggregation=ConstantLength(4))
    assert changed_slots(base.replace(loss=Clip(0.1, 0.1)), base) == {
        "loss": "Clip(clip_low=0.1, clip_high=0.1)"
    }
    assert changed_slots(Method(), base) == {"aggregation": "aggregation.sequence_mean"}


def test_required_signals_are_those_of_the_loss():
    assert Method().requires.all_signals == frozenset()
    assert Method(loss=Clip() + 0.1 * KL() + 0.1 * Entropy()).requires.all_signals == {
        "logp@ref",
        "entropy",
    }


def test_methods_compare_and_hash_by_value():
    assert len({Method(), Method(loss=Clip()), Method(loss=Clip(0.1))}) == 2
