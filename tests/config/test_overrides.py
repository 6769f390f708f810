"""Fields and values as a command line says them."""

import pytest

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import ConstantLength, token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import UpdatePlan, Updates
from grupo.catalogue import methods
from grupo.config.overrides import describe_type, field_paths, parse_value, set_field
from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.protocols import available_components
from grupo.core.schedules import Cosine, Linear, Schedule, Warmup
from grupo.core.serialization import matches_type
from grupo.inference.sampling_params import Sampling
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.models.loading import Lora
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.rollouts.samplers import FirstTurnTree, GroupSampler, ResampleUntilInformative
from grupo.toy.quickstart import RECIPE


@component
class Holder:
    number: float = 0.0
    pairs: tuple[tuple[str, float], ...] = ()
    sizes: tuple[int, int] = (1, 2)
    schedule: float | Schedule = 0.0
    plan: UpdatePlan = Updates()
    solved: SuccessCriterion | None = None
    text: str = ""


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("number", "3", 3.0),
        ("number", "-1e-5", -1e-5),
        ("number", "Linear(1, 0)", Linear(1.0, 0.0)),
        ("pairs", "(('a', 1), ('b', 2.5))", (("a", 1.0), ("b", 2.5))),
        ("pairs", "()", ()),
        ("sizes", "(3, 4)", (3, 4)),
        ("schedule", "Warmup(0.1, schedule=Cosine(1e-3))", Warmup(0.1, Cosine(1e-3))),
        ("plan", "Updates(minibatches=4)", Updates(1, 4)),
        ("solved", "SuccessCriterion('right', 0.5)", SuccessCriterion("right", 0.5)),
        (
            "solved",
            "SuccessCriterion(right)",
            SuccessCriterion("right"),
        ),  # quotes are a burden in a shell
        ("solved", "None", None),
        ("text", "None", "None"),
        ("text", "3", "3"),
        ("text", "Linear(1, 0)", "Linear(1, 0)"),
        ("text", "'quoted'", "quoted"),
        ("text", "a = b (", "a = b ("),
    ],
)
def test_a_value_is_read_as_its_field_wants_it(field, text, value):
    new = getattr(set_field(Holder(), field, text), field)
    assert (new, type(new)) == (value, type(value))


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("policy.lora", "Lora(rank=8)", Lora(8)),
        ("policy.sampling", "Sampling(top_p=0.9)", Sampling(top_p=0.9)),
        ("policy.stop_strings", "('a',)", ("a",)),
        (
            "method.sample",
            "ResampleUntilInformative(FirstTurnTree(2, 2), max_tries=3)",
            ResampleUntilInformative(FirstTurnTree(2, 2), 3),
        ),
        ("method.credit", "Center()", Center()),
        ("method.credit", "Chain((Center(), ScaleByStd()))", chain(Center(), ScaleByStd())),
        ("method.loss", "SumLoss(Clip(0.1), ScaledLoss(0.5, KL()))", Clip(0.1) + 0.5 * KL()),
        ("method.loss.high", "Linear(0.2, 0.3)", Linear(0.2, 0.3)),
        ("method.weigh", "token_mean", token_mean),
        ("method.weigh", "ConstantLength(64)", ConstantLength(64)),
        ("method.curate", "informative", keep_nonzero_std),
        ("evaluation.solved.at_least", "1", 1.0),
    ],
)
def test_fields_of_a_recipe_however_deep(field, text, value):
    new = set_field(RECIPE, field, text)
    for name in field.split("."):
        new = getattr(new, name)
    assert new == value


def test_the_rest_of_a_piece_stays_as_it_is():
    assert set_field(RECIPE, "policy.max_new_tokens", "5") == RECIPE.replace(
        policy=CausalLM(
            RECIPE.policy.model, max_new_tokens=5, tokens_per_microbatch=RECIPE.policy.budget
        )
    )


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("numbr", "1", "numbr: Holder has no field 'numbr'. Did you mean 'number'? Allowed: "),
        ("at_least", "1", "Did you mean 'solved.at_least'?"),
        ("solved.at_lest", "1", "solved.at_lest: Solved has no field 'at_lest'. Did you mean 'at_"),
        ("number.deeper", "1", "number.deeper: float has no field 'deeper'. There is nothing to"),
        ("number", "one", "number: 'one' does not fit. Allowed: a number"),
        ("sizes", "(1, 2, 3)", "sizes: '(1, 2, 3)' does not fit. Allowed: a tuple (…,) of which"),
        ("sizes", "(1, 'b')", "does not fit"),
        ("plan", "Passes", "plan: 'Passes' does not fit. Allowed: SingleUpdate(…) or Updates(…)."),
        ("plan", "Linear(1, 0)", "plan: there is no 'Linear' to be made here. Allowed: OnePass, "),
        ("plan", "Updates(1, 2, 3)", "says too much. Allowed: Updates(epochs, minibatches)."),
        ("plan", "Updates(1, epochs=2)", "says too much"),
        ("plan", "Updates(*x)", "Passes's epochs: *x does not fit"),
        ("plan", "Updates(**x)", "Passes has no 'None'"),
        ("plan", "Updates(epoch=1)", "plan: Passes has no 'epoch'. Did you mean 'epochs'?"),
        (
            "plan",
            "Updates('a')",
            "plan: Passes's epochs: 'a' does not fit. Allowed: a whole number",
        ),
        ("schedule", "Linear(1)", "schedule: 'Linear(1)' lacks 'end'. Allowed: Linear(start, end)"),
        ("schedule", "Warmup(0.1, Linear(1))", "schedule, Warmup's then: 'Linear(1)' lacks 'end'"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_place(field, text, said):
    holder = Holder(solved=SuccessCriterion())
    with pytest.raises(ConfigError) as refusal:
        set_field(holder, field, text)
    assert said in str(refusal.value)


def test_a_piece_that_refuses_its_own_fields_is_quoted_with_their_place():
    for field, text in (("policy.sampling", "Sampling(0)"), ("policy.sampling.temperature", "0")):
        with pytest.raises(ConfigError, match=rf"^{field}: .*0\.0\. Allowed: above 0"):
            set_field(RECIPE, field, text)


def test_nothing_is_evaluated():
    with pytest.raises(ConfigError, match="there is no 'print' to be made here"):
        set_field(Holder(), "number", "print('hello')")
    with pytest.raises(ConfigError, match="does not fit"):
        set_field(Holder(), "number", "(1).__class__")
    assert set_field(Holder(), "text", "exit()").text == "exit()"


@pytest.mark.parametrize("name", ["gpt2-medium", "owner/name", "owner/name.v2", "a  and b", "f(x)"])
def test_a_text_that_looks_like_code_stays_as_it_was_written(name):
    assert set_field(RECIPE, "policy.model", name).policy.model == name


def test_a_text_too_deep_to_parse_is_a_text():
    deep = "(" * 5000
    assert parse_value(deep, str, "text") == deep


def test_every_slot_of_a_method_names_what_fills_it():
    hints = Method.__annotations__
    for slot, hint in hints.items():
        assert available_components(hint), slot
        assert all(
            matches_type(x, hint)
            for x in available_components(hint).values()
            if not isinstance(x, type)
        ), slot
    assert {"Independent", "Tree", "UntilInformative"} <= set(available_components(hints["sample"]))
    assert {"keep_all", "informative", "KeepExtremes"} <= set(available_components(hints["curate"]))


def test_every_field_of_every_methods_recipe_is_a_place():
    for entry in methods():
        found = list(field_paths(RECIPE.replace(method=entry.method)))
        assert len(found) == len(set(found))
        assert {"steps", "policy.sampling.top_k", "method.loss", "evaluation.solved.part"} <= {
            *found
        }


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        (int, "a whole number"),
        (float | None, "a number or None"),
        (Lora | None, "Lora(…) or None"),
        (tuple[str, ...], "a tuple (…,) of which each is a text"),
        (Schedule, "Cosine(…) or Exponential(…) or Linear(…) or Switch(…) or Warmup(…)"),
        (GroupSampler, "GroupSampler(…)"),
    ],
)
def test_types_are_said_in_words(hint, said):
    assert describe_type(hint) == said
