"""Fields and values as a command line says them."""

import pytest

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import FixedLength, token_mean
from grupo.algo.filters import informative
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Passes, Plan
from grupo.catalogue import methods
from grupo.config.overrides import changed, places, read, say
from grupo.core.component import piece
from grupo.core.errors import Refused
from grupo.core.protocols import spelled
from grupo.core.schedules import Cosine, Linear, Schedule, Warmup
from grupo.core.serialization import fits
from grupo.inference.sampling_params import Sampling
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.models.loading import Lora
from grupo.rollouts.evaluate import Solved
from grupo.rollouts.samplers import Independent, Tree, UntilInformative
from grupo.toy.quickstart import RECIPE


@piece
class Holder:
    number: float = 0.0
    pairs: tuple[tuple[str, float], ...] = ()
    sizes: tuple[int, int] = (1, 2)
    schedule: float | Schedule = 0.0
    plan: Plan = Passes()
    solved: Solved | None = None
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
        ("schedule", "Warmup(0.1, then=Cosine(1e-3))", Warmup(0.1, Cosine(1e-3))),
        ("plan", "Passes(minibatches=4)", Passes(1, 4)),
        ("solved", "Solved('right', 0.5)", Solved("right", 0.5)),
        ("solved", "Solved(right)", Solved("right")),  # quotes are a burden in a shell
        ("solved", "None", None),
        ("text", "None", "None"),
        ("text", "3", "3"),
        ("text", "Linear(1, 0)", "Linear(1, 0)"),
        ("text", "'quoted'", "quoted"),
        ("text", "a = b (", "a = b ("),
    ],
)
def test_a_value_is_read_as_its_field_wants_it(field, text, value):
    new = getattr(changed(Holder(), field, text), field)
    assert (new, type(new)) == (value, type(value))


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("policy.lora", "Lora(rank=8)", Lora(8)),
        ("policy.sampling", "Sampling(top_p=0.9)", Sampling(top_p=0.9)),
        ("policy.stop", "('a',)", ("a",)),
        ("method.sample", "UntilInformative(Tree(2, 2), tries=3)", UntilInformative(Tree(2, 2), 3)),
        ("method.credit", "Center()", Center()),
        ("method.credit", "Chain((Center(), ScaleByStd()))", chain(Center(), ScaleByStd())),
        ("method.loss", "Sum(Clip(0.1), Scaled(0.5, KL()))", Clip(0.1) + 0.5 * KL()),
        ("method.loss.high", "Linear(0.2, 0.3)", Linear(0.2, 0.3)),
        ("method.weigh", "token_mean", token_mean),
        ("method.weigh", "FixedLength(64)", FixedLength(64)),
        ("method.curate", "informative", informative),
        ("evaluation.solved.at_least", "1", 1.0),
    ],
)
def test_fields_of_a_recipe_however_deep(field, text, value):
    new = changed(RECIPE, field, text)
    for name in field.split("."):
        new = getattr(new, name)
    assert new == value


def test_the_rest_of_a_piece_stays_as_it_is():
    assert changed(RECIPE, "policy.limit", "5") == RECIPE.but(
        policy=CausalLM(RECIPE.policy.model, limit=5, budget=RECIPE.policy.budget)
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
        ("plan", "Passes", "plan: 'Passes' does not fit. Allowed: OnePass(…) or Passes(…)."),
        ("plan", "Linear(1, 0)", "plan: there is no 'Linear' to be made here. Allowed: OnePass, "),
        ("plan", "Passes(1, 2, 3)", "says too much. Allowed: Passes(epochs, minibatches)."),
        ("plan", "Passes(1, epochs=2)", "says too much"),
        ("plan", "Passes(*x)", "Passes's epochs: *x does not fit"),
        ("plan", "Passes(**x)", "Passes has no 'None'"),
        ("plan", "Passes(epoch=1)", "plan: Passes has no 'epoch'. Did you mean 'epochs'?"),
        ("plan", "Passes('a')", "plan: Passes's epochs: 'a' does not fit. Allowed: a whole number"),
        ("schedule", "Linear(1)", "schedule: 'Linear(1)' lacks 'end'. Allowed: Linear(start, end)"),
        ("schedule", "Warmup(0.1, Linear(1))", "schedule, Warmup's then: 'Linear(1)' lacks 'end'"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_place(field, text, said):
    holder = Holder(solved=Solved())
    with pytest.raises(Refused) as refusal:
        changed(holder, field, text)
    assert said in str(refusal.value)


def test_a_piece_that_refuses_its_own_fields_is_quoted_with_their_place():
    for field, text in (("policy.sampling", "Sampling(0)"), ("policy.sampling.temperature", "0")):
        with pytest.raises(Refused, match=rf"^{field}: .*0\.0\. Allowed: above 0"):
            changed(RECIPE, field, text)


def test_nothing_is_evaluated():
    with pytest.raises(Refused, match="there is no 'print' to be made here"):
        changed(Holder(), "number", "print('hello')")
    with pytest.raises(Refused, match="does not fit"):
        changed(Holder(), "number", "(1).__class__")
    assert changed(Holder(), "text", "exit()").text == "exit()"


@pytest.mark.parametrize("name", ["gpt2-medium", "owner/name", "owner/name.v2", "a  and b", "f(x)"])
def test_a_text_that_looks_like_code_stays_as_it_was_written(name):
    assert changed(RECIPE, "policy.model", name).policy.model == name


def test_a_text_too_deep_to_parse_is_a_text():
    deep = "(" * 5000
    assert read(deep, str, "text") == deep


def test_every_slot_of_a_method_names_what_fills_it():
    hints = Method.__annotations__
    for slot, hint in hints.items():
        assert spelled(hint), slot
        assert all(fits(x, hint) for x in spelled(hint).values() if not isinstance(x, type)), slot
    assert {"Independent", "Tree", "UntilInformative"} <= set(spelled(hints["sample"]))
    assert {"keep_all", "informative", "KeepExtremes"} <= set(spelled(hints["curate"]))


def test_every_field_of_every_methods_recipe_is_a_place():
    for entry in methods():
        found = list(places(RECIPE.but(method=entry.method)))
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
        (Independent, "Independent(…)"),
    ],
)
def test_types_are_said_in_words(hint, said):
    assert say(hint) == said
