"""Where not all fit at once, rows join as others leave, and nobody notices."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grupo.inference.base import Reply, Request, generate_all
from grupo.models.causal_policy import CausalPolicy
from grupo.models.loading import Lora
from tests.helpers import tiny_lm
from tests.helpers.engine_requests import (
    BOUNDS,
    FAMILIES,
    MANY,
    TEXTS,
    Read,
    after,
    ask,
    assert_evaluated,
    assert_same,
    engine,
    evaluated,
    policy_of,
    watched,
)
from tests.helpers.tiny_lm import CONTEXT

FEW = 600  # cells: room for two thirds of them
OFTEN = tuple(range(0, 99, 7))  # tokens that end an answer: rows leave at many times


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """A policy of every family."""
    return policy_of(tmp_path_factory.mktemp("models"), request.param)


def joined(reads: list[Read]) -> int:
    """How many reads were of rows of which some had said more than others."""
    return sum(len(set(read.said)) > 1 for read in reads)


def test_rows_join_while_others_speak_where_there_is_room_for_some(policy: CausalPolicy):
    with watched(policy) as all_at_once:
        whole = generate_all(engine(policy, ends=OFTEN), MANY)
    with watched(policy) as some:
        parts = generate_all(engine(policy, cells=FEW, ends=OFTEN), MANY)
    with watched(policy) as each:
        for request in MANY:
            generate_all(engine(policy, ends=OFTEN), [request])
    assert joined(all_at_once) == joined(each) == 0 < joined(some)
    assert len(all_at_once) < len(some) < len(each)
    assert_same(parts, whole)


def test_rows_join_where_few_fit(policy: CausalPolicy):
    with watched(policy) as reads:
        generate_all(engine(policy, cells=400, ends=OFTEN), MANY)
    assert max(len(read.said) for read in reads) < 16
    assert joined(reads) > 0


@pytest.mark.parametrize("cells", [100, FEW])
def test_rows_hold_no_more_than_there_is_room_for(policy: CausalPolicy, cells: int):
    with watched(policy) as reads:
        generate_all(engine(policy, cells=cells), MANY)
    held = [
        read.held + BOUNDS.max_new_tokens * len(read.said) for read in reads if not read.prompts
    ]
    assert cells / 2 < max(held) <= cells


def test_in_every_family_who_joins_is_told_the_same(family: CausalPolicy):
    with watched(family) as reads:
        said = generate_all(engine(family, cells=FEW, ends=OFTEN), MANY)
    assert joined(reads) > 0
    assert_same(said, generate_all(engine(family, ends=OFTEN), MANY))
    assert_evaluated(family, MANY, said)


def so(asked: list[Request], said: list[Reply]) -> list[Request]:
    """What is asked next."""
    both = zip(asked, said, strict=True)
    return [after(request, reply, " so?", i) for i, (request, reply) in enumerate(both)]


def test_in_every_family_who_joins_after_a_turn_is_told_the_same(family: CausalPolicy):
    one = engine(family, cells=900, limit=14, ends=OFTEN)
    asked = so(MANY, generate_all(one, MANY))
    with watched(family) as reads:
        said = generate_all(one, asked)
    assert joined(reads) > 0
    assert_evaluated(family, asked, said)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(TEXTS), st.integers(0, 9)), min_size=1, max_size=40),
    st.integers(1, 900),
    st.integers(1, 30),
    st.integers(1, 98),
)
def test_whoever_asks_and_however_many_fit(policy, asked, cells, limit, ends):
    """Whose answers end often, for many tokens end one: rows leave and join at any time."""
    requests = [ask(*one) for one in asked]
    told = {"limit": limit, "ends": tuple(range(0, 99, ends))}
    said = generate_all(engine(policy, cells=cells, **told), requests)
    assert_same(said, generate_all(engine(policy, **told), requests))


def test_who_joins_at_the_end_of_the_context_is_cut_there(policy: CausalPolicy):
    rooms = (1, 2, 5, 20)
    long = [ask("x" * (CONTEXT - room), room) for room in rooms]
    with watched(policy) as reads:
        said = generate_all(engine(policy, cells=FEW, ends=OFTEN), [*MANY, *long])
    assert joined(reads) > 0
    apart = [generate_all(engine(policy, ends=OFTEN), some) for some in (MANY, long)]
    assert_same(said, apart[0] + apart[1])
    assert all(len(reply.tokens) <= room for reply, room in zip(said[-4:], rooms, strict=True))


def off(policy: CausalPolicy, asked: list[Request], said: list[Reply]) -> tuple[float, float]:
    """How far what was said, and what the model's own attention says, are from the exact."""
    exact = copy.deepcopy(policy.hf_model).float()
    exact.set_attn_implementation("eager")
    sums = torch.zeros(2)
    with tiny_lm.dense_attention(policy) as model:
        for request, reply in zip(asked, said, strict=True):
            truth = evaluated(exact, request, reply)
            with torch.autocast("cpu", torch.bfloat16):
                own = evaluated(model, request, reply)
            apart = torch.stack([torch.tensor(reply.logp) - truth, own - truth])
            sums += apart.square().sum(1)
    return sums[0].item(), sums[1].item()


@pytest.mark.usefixtures("bfloat16_here")
@pytest.mark.parametrize("lora", [None, Lora(4)], ids=["full", "lora"])
@pytest.mark.parametrize("name", FAMILIES)
def test_in_bfloat16_what_is_said_is_as_near_the_exact_as_by_its_own_attention(
    tmp_path, name, lora
):
    policy = policy_of(tmp_path, name, dtype="bfloat16", lora=lora)
    one = engine(policy, cells=900, limit=14, ends=OFTEN)
    with watched(policy) as reads, torch.autocast("cpu", torch.bfloat16):
        first = generate_all(one, MANY)
        asked = so(MANY, first)
        said = generate_all(one, asked)
    assert joined(reads) > 0
    ours, own = off(policy, [*MANY, *asked], [*first, *said])
    assert 0 < ours < 1.5**2 * own
