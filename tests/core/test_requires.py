import pytest

from grupo.algo.advantages import UseRewardTerm, chain
from grupo.algo.advantages.gae import GAE
from grupo.algo.losses import KL, Clip, Entropy
from grupo.core.aux_heads import LinearHead
from grupo.core.component import component
from grupo.core.kept_rollouts import BestAndWorst
from grupo.core.requires import Provides, Requires, merged_provides, merged_requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithGreedyBaseline

HEAD = LinearHead("value")


def test_merging_unites_names_and_takes_the_strictest_flags():
    left = Requires(
        signals=("a",),
        heads=(HEAD,),
        replay_rules=(BestAndWorst(),),
        demonstrations=2,
        whole_batch=True,
    )
    right = Requires(
        signals=("b",), recomputed_signals=("c",), heads=(HEAD,), replay_rules=(BestAndWorst(3),)
    )
    merged = left | right
    assert merged == Requires(
        signals=("a", "b"),
        recomputed_signals=("c",),
        heads=(HEAD,),
        replay_rules=(BestAndWorst(1), BestAndWorst(3)),
        demonstrations=2,
        whole_batch=True,
    )
    assert merged.all_signals == {"a", "b", "c"}
    assert (merged.coupled_rows, merged.surrogate_gradient, merged.current_heads) == (False,) * 3


def test_requires_and_provides_print_as_code_without_empty_fields():
    assert (
        repr(Requires(signals=["b", "a"], replay_buffer=2))
        == "Requires(signals=['a', 'b'], replay_buffer=2)"
    )
    assert repr(Provides(reward_terms=["x"])) == "Provides(reward_terms=['x'])"


def test_a_misspelt_field_is_an_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'signal'"):
        Requires(signal=("a",))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"signals": "logp@ref"}, r"signals: 'logp@ref' is one string. Allowed: names"),
        ({"reward_terms": ("",)}, "reward_terms: '' is no name"),
        ({"columns": (3,)}, "columns: 3 is no name"),
        ({"heads": ("value",)}, "heads: 'value' is no auxiliary head"),
        ({"heads": (HEAD, LinearHead("value", 1.0))}, "heads: two have one name"),
        ({"replay_rules": (1,)}, "replay_rules: 1 is no rule. Allowed: BestAndWorst"),
        ({"demonstrations": -1}, "demonstrations: -1. Allowed: a whole number"),
        ({"whole_batch": ("x",)}, "whole_batch: .*Allowed: True or False"),
    ],
)
def test_values_of_another_type_are_errors(arguments, message):
    with pytest.raises(TypeError, match=message):
        Requires(**arguments)


def test_a_method_merges_the_declarations_of_all_slots():
    method = Method(
        sampler=WithGreedyBaseline(GroupSampler(4)),
        advantage=chain(UseRewardTerm("short"), GAE()),
        loss=Clip() + 0.1 * KL() + 0.1 * Entropy(),
    )
    assert method.requires.signals == {"value", "logp@ref"}
    assert method.requires.recomputed_signals == {"entropy"}
    assert method.requires.reward_terms == {"short"}
    assert method.requires.heads == (HEAD,)
    assert method.provides == Provides(reward_terms=("greedy",))


def test_classes_and_plain_values_declare_nothing():
    assert merged_requires(GAE, 1.0, ("a", None)) == Requires()
    assert merged_provides(GroupSampler(4), "x") == Provides()


def test_a_misspelt_declaration_of_a_component_is_an_error():
    message = "ReadsEntropy.require is neither a field.* nor a declaration. Did you mean 'requires'"
    with pytest.raises(TypeError, match=message):

        @component
        class ReadsEntropy:
            require = Requires(signals=("entropy",))


def test_a_misspelt_property_that_returns_a_declaration_is_an_error():
    with pytest.raises(TypeError, match=r"AddsTerm.provide is neither a field"):

        @component
        class AddsTerm:
            @property
            def provide(self) -> Provides:
                return Provides(reward_terms=("x",))


def test_a_class_attribute_without_annotation_is_an_error():
    with pytest.raises(TypeError, match=r"OldStyle.required_signals is neither a field"):

        @component
        class OldStyle:
            required_signals = ("entropy",)


def test_a_declaration_of_another_type_is_an_error():
    with pytest.raises(TypeError, match=r"ReadsTuple.requires: \('entropy',\). Allowed: Requires"):

        @component
        class ReadsTuple:
            requires = ("entropy",)

    with pytest.raises(TypeError, match=r"Mixed.provides: Requires\(\). Allowed: Provides"):

        @component
        class Mixed:
            provides = Requires()


def test_an_error_within_a_property_is_not_hidden():
    @component
    class Misspelt:
        @property
        def requires(self) -> Requires:
            return Requires(signals=(self.sginal,))

    with pytest.raises(AttributeError, match="sginal"):
        merged_requires(Misspelt())
