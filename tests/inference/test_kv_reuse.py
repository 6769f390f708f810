"""What was read once is not read again, and is as good as read again."""

import pytest

from grupo.inference.base import Reply, Request, generate_all
from grupo.inference.local import LocalEngine
from grupo.inference.sampling_params import Sampling
from grupo.models.causal_policy import CausalPolicy
from tests.helpers.engine_requests import (
    BOUNDS,
    FAMILIES,
    MANY,
    Read,
    after,
    alone,
    ask,
    assert_evaluated,
    assert_same,
    engine,
    policy_of,
    watched,
)

ASKED = ask("What is 2+2?", 0)
MORE = " And now?"


def prompts(reads: list[Read]) -> list[int]:
    """How many tokens of prompts were read, each time that some were."""
    return [read.count for read in reads if read.prompts]


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """A policy of every family."""
    return policy_of(tmp_path_factory.mktemp("models"), request.param)


def test_a_prompt_is_read_once_however_often_it_is_asked(policy: CausalPolicy):
    one = engine(policy)
    with watched(policy) as reads:
        first = generate_all(one, [ask("What is 2+2?", key) for key in range(6)])
        again = generate_all(one, [ask("What is 2+2?", key) for key in range(6)])
    assert prompts(reads) == [12, 1]  # its last token says what comes next
    assert_same(again, first)


def test_a_continuation_reads_what_is_new_and_says_the_same_as_if_it_read_all(policy: CausalPolicy):
    one = engine(policy)
    first = generate_all(one, [ASKED])[0]
    second = after(ASKED, first, MORE, key=5)
    with watched(policy) as reads:
        said = generate_all(one, [second])
    assert prompts(reads) == [1 + len(MORE)]  # the last token of a reply was said, not read
    assert_same(said, alone(policy, [second]))


def turns(
    one: LocalEngine, count: int, asked: list[Request]
) -> list[tuple[list[Request], list[Reply]]]:
    """Requests of so many turns, each after the replies to those before, and the replies."""
    found = []
    for turn in range(count):
        said = generate_all(one, asked)
        found.append((asked, said))
        both = zip(asked, said, strict=True)
        asked = [after(r, reply, " so", 10 * turn + i) for i, (r, reply) in enumerate(both)]
    return found


START = [ask("Hi", 1), ask("Hi", 2), ask("Go on", 3), ask("A longer one.", 4)]


def test_conversations_of_many_turns_read_each_turn_once(policy: CausalPolicy):
    with watched(policy) as reads:
        found = turns(engine(policy, limit=6), 4, START)
    for asked, said in found:
        assert_same(said, alone(policy, asked, limit=6))
    new = 4 * (1 + len(" so"))
    assert prompts(reads) == [len("HiGo onA longer one."), new, new, new]


def test_in_every_family_what_follows_is_as_likely_as_the_whole_read_again(family: CausalPolicy):
    for asked, said in turns(engine(family, limit=6), 4, START):
        assert_evaluated(family, asked, said)


def test_forks_read_what_they_go_on_from_once(policy: CausalPolicy):
    one = engine(policy, limit=8)
    first = generate_all(one, [ASKED])[0]
    forks = [after(ASKED, first, text, key) for key, text in enumerate(("a", "bc", "d", "d"))]
    forks += [Request((*ASKED.tokens, *first.tokens[:n]), ASKED.rng_key + n) for n in (1, 3, 3)]
    with watched(policy) as reads:
        said = generate_all(one, forks)
    assert sum(prompts(reads)) <= sum(1 + n for n in (1, 2, 1, 0, 0))
    assert_same(said, alone(policy, forks, limit=8))


@pytest.mark.parametrize("cut", [1, 2, 7, 23])
def test_an_answer_that_was_cut_goes_on_as_if_it_had_not_been(policy: CausalPolicy, cut: int):
    whole, short = generate_all(engine(policy), MANY), engine(policy, limit=cut)
    begun = generate_all(short, MANY)
    over = [reply.finish_reason != "length" for reply in begun]
    going = [i for i, done in enumerate(over) if not done]
    rest = [after(MANY[i], begun[i]) for i in going]
    on = engine(policy, memory=0)
    for one in (
        LocalEngine(
            short.backend, short.lm_head, short.tokenizer, BOUNDS, prefix_cache=short.prefix_cache
        ),
        on,
    ):
        for i, more in zip(going, generate_all(one, rest), strict=True):
            tokens = (*begun[i].tokens, *more.tokens)
            assert tokens[: len(whole[i].tokens)] == whole[i].tokens
    assert len(going) > 10


def test_how_answers_are_drawn_does_not_matter_to_what_was_read(policy: CausalPolicy):
    one, greedy = engine(policy), Sampling(top_k=1)
    asked = [ASKED, Request(ASKED.tokens, 1, greedy), Request(ASKED.tokens, 1)]
    with watched(policy) as reads:
        said = generate_all(one, asked)
    assert sorted(prompts(reads)) == [1, 12]
    assert_same(said, alone(policy, asked))


@pytest.mark.parametrize("memory", [0, 20, 60, 300])
def test_where_memory_is_full_nothing_is_wrong_only_slower(policy: CausalPolicy, memory: int):
    with watched(policy) as reads:
        found = turns(engine(policy, memory=memory, limit=6), 4, START)
    for asked, said in found:
        assert_same(said, alone(policy, asked, limit=6))
    with watched(policy) as ample:
        turns(engine(policy, limit=6), 4, START)
    slower = sum(prompts(reads)) > sum(prompts(ample))
    assert slower == (memory < 300)


def test_memory_holds_about_as_much_as_it_should(policy: CausalPolicy):
    one = engine(policy, memory=100, limit=6)
    for number in range(30):
        generate_all(one, [ask(f"{number:03} is a number", number)])
        assert len(one.prefix_cache.children) <= 100 + len("000 is a number") + 5
