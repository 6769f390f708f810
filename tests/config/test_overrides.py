"""Fields and values in the notation of the command line."""

import pytest

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import ConstantLength, token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import UpdatePlan, Updates
from grupo.catalogue.entries import methods
from grupo.config.overrides import field_paths, set_field
from grupo.config.parse_value import parse_value
from grupo.core.component import component
from grupo.core.field_types import describe_type, matches_type
from grupo.core.numbers import NumberOrSchedule
from grupo.core.protocols import available_components
from grupo.core.schedules import Cosine, Linear, Schedule, Warmup
from grupo.inference.sampling_params import Sampling
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.models.lora import Lora
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.rollouts.samplers import FirstTurnTree, GroupSampler, ResampleUntilInformative
from grupo.toy.quickstart import RECIPE
from grupo.util.errors import ConfigError


@component
class Holder:
    number: NumberOrSchedule = 0.0
    pairs: tuple[tuple[str, float], ...] = ()
    sizes: tuple[int, int] = (1, 2)
    schedule: float | Schedule = 0.0
    updates: UpdatePlan = Updates()
    success: SuccessCriterion | None = None
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
        ("updates", "Updates(minibatches=4)", Updates(1, 4)),
        ("success", "SuccessCriterion('right', 0.5)", SuccessCriterion("right", 0.5)),
        (
            "success",
            "SuccessCriterion(right)",
            SuccessCriterion("right"),
        ),  # quotes may be left out in a shell
        ("success", "None", None),
        ("text", "None", "None"),
        ("text", "3", "3"),
        ("text", "Linear(1, 0)", "Linear(1, 0)"),
        ("text", "'quoted'", "quoted"),
        ("text", "a = b (", "a = b ("),
    ],
)
def test_value_is_parsed_by_the_type_of_its_field(field, text, value):
    parsed = getattr(set_field(Holder(), field, text), field)
    assert (parsed, type(parsed)) == (value, type(value))


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("policy.lora", "Lora(rank=8)", Lora(8)),
        ("policy.sampling", "Sampling(top_p=0.9)", Sampling(top_p=0.9)),
        ("policy.stop_strings", "('a',)", ("a",)),
        (
            "method.sampler",
            "ResampleUntilInformative(FirstTurnTree(2, 2), max_tries=3)",
            ResampleUntilInformative(FirstTurnTree(2, 2), 3),
        ),
        ("method.advantage", "Center()", Center()),
        ("method.advantage", "Chain((Center(), ScaleByStd()))", chain(Center(), ScaleByStd())),
        ("method.loss", "SumLoss(Clip(0.1), ScaledLoss(0.5, KL()))", Clip(0.1) + 0.5 * KL()),
        ("method.loss.clip_high", "Linear(0.2, 0.3)", Linear(0.2, 0.3)),
        ("method.aggregation", "token_mean", token_mean),
        ("method.aggregation", "ConstantLength(64)", ConstantLength(64)),
        ("method.filter", "keep_nonzero_std", keep_nonzero_std),
        ("evaluation.success.min_reward", "1", 1.0),
    ],
)
def test_fields_of_a_recipe_at_any_depth(field, text, value):
    component = set_field(RECIPE, field, text)
    for name in field.split("."):
        component = getattr(component, name)
    assert component == value


def test_other_fields_are_unchanged():
    policy = RECIPE.policy
    changed = CausalLM(
        policy.model, max_new_tokens=5, tokens_per_microbatch=policy.tokens_per_microbatch
    )
    assert set_field(RECIPE, "policy.max_new_tokens", "5") == RECIPE.replace(policy=changed)


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        ("numbr", "1", "numbr: Holder has no field 'numbr'. Did you mean 'number'? Allowed: "),
        ("min_reward", "1", "Did you mean 'success.min_reward'?"),
        (
            "success.min_rewrd",
            "1",
            "success.min_rewrd: SuccessCriterion has no field 'min_rewrd'. Did you mean 'min_r",
        ),
        ("number.deeper", "1", "number.deeper: float has no field 'deeper'. There is nothing to"),
        ("number", "one", "number: 'one' does not fit. Allowed: a number"),
        ("sizes", "(1, 2, 3)", "sizes: '(1, 2, 3)' does not fit. Allowed: a tuple (…,) of which"),
        ("sizes", "(1, 'b')", "does not fit"),
        (
            "updates",
            "Updates",
            "updates: 'Updates' does not fit. Allowed: SingleUpdate(…) or Updates(…).",
        ),
        (
            "updates",
            "Linear(1, 0)",
            "updates: 'Linear' cannot be used here. Allowed: SingleUpdate, ",
        ),
        (
            "updates",
            "Updates(1, 2, 3)",
            "has too many arguments. Allowed: Updates(epochs, minibatches).",
        ),
        ("updates", "Updates(1, epochs=2)", "has too many arguments"),
        ("updates", "Updates(*x)", "epochs of Updates: *x does not fit"),
        ("updates", "Updates(**x)", "Updates has no 'None'"),
        ("updates", "Updates(epoch=1)", "updates: Updates has no 'epoch'. Did you mean 'epochs'?"),
        (
            "updates",
            "Updates('a')",
            "updates: epochs of Updates: 'a' does not fit. Allowed: a whole number",
        ),
        ("schedule", "Linear(1)", "schedule: 'Linear(1)' lacks 'end'. Allowed: Linear(start, end)"),
        ("schedule", "Warmup(0.1, Linear(1))", "schedule, schedule of Warmup: 'Linear(1)' lacks"),
    ],
)
def test_invalid_values_are_rejected_with_their_place(field, text, message):
    holder = Holder(success=SuccessCriterion())
    with pytest.raises(ConfigError) as caught:
        set_field(holder, field, text)
    assert message in str(caught.value)


def test_errors_of_a_component_s_own_checks_begin_with_their_place():
    for field, text in (("policy.sampling", "Sampling(0)"), ("policy.sampling.temperature", "0")):
        with pytest.raises(ConfigError, match=rf"^{field}: .*0\.0\. Allowed: above 0"):
            set_field(RECIPE, field, text)


def test_values_are_not_evaluated():
    with pytest.raises(ConfigError, match="'print' cannot be used here"):
        set_field(Holder(), "number", "print('hello')")
    with pytest.raises(ConfigError, match="does not fit"):
        set_field(Holder(), "number", "(1).__class__")
    assert set_field(Holder(), "text", "exit()").text == "exit()"


@pytest.mark.parametrize("name", ["gpt2-medium", "owner/name", "owner/name.v2", "a  and b", "f(x)"])
def test_string_that_looks_like_code_is_unchanged(name):
    assert set_field(RECIPE, "policy.model", name).policy.model == name


def test_string_too_deep_to_parse_is_a_string():
    deep = "(" * 5000
    assert parse_value(deep, str, "text") == deep


def test_every_slot_of_a_method_has_available_components():
    hints = Method.__annotations__
    for slot, hint in hints.items():
        assert available_components(hint), slot
        assert all(
            matches_type(x, hint)
            for x in available_components(hint).values()
            if not isinstance(x, type)
        ), slot
    assert {"GroupSampler", "FirstTurnTree"} <= set(available_components(hints["sampler"]))
    assert {"keep_all", "keep_nonzero_std"} <= set(available_components(hints["filter"]))


def test_field_paths_of_every_method_s_recipe_are_unique():
    for entry in methods():
        paths = list(field_paths(RECIPE.replace(method=entry.method)))
        assert len(paths) == len(set(paths))
        assert {"max_steps", "policy.sampling.top_k", "method.loss"} <= {*paths}
        assert "evaluation.success.reward_term" in paths


@pytest.mark.parametrize(
    ("hint", "description"),
    [
        (int, "a whole number"),
        (float | None, "a number or None"),
        (Lora | None, "Lora(…) or None"),
        (tuple[str, ...], "a tuple (…,) of which each is a string"),
        (
            Schedule,
            "Cosine(…) or CosineRestarts(…) or Exponential(…) or GeometricSteps(…) or Linear(…)"
            " or LinearSteps(…) or Switch(…) or Warmup(…)",
        ),
        (GroupSampler, "GroupSampler(…)"),
    ],
)
def test_types_are_described_in_words(hint, description):
    assert describe_type(hint) == description
