"""Replies that are recorded and continued: what the engine is asked, and what is returned."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from grupo.core.decoding import LockStep
from grupo.inference.base import Reply, Request, StopConditions
from grupo.inference.continued_replies import StreamingBatcher
from grupo.inference.counting_batcher import CountingBatcher
from grupo.inference.reply_record import RecordedReply, RecordingBatcher, ReplyRecord
from grupo.toy.tokenizers import phrase_tokenizer
from grupo.util.event_loop import run_coroutine

TOKENIZER = phrase_tokenizer([])
LIMITS = StopConditions(max_new_tokens=10, eos_token_ids=(0,), context_length=40)
PROMPT = Request((3, 4), rng_key=7)


class CountingEngine:
    """Generates the positions of tokens, and records requests; an answer has `length` tokens."""

    def __init__(self, length: int = 10) -> None:
        self.length = length
        self.requests: list[Request] = []

    def __call__(self, requests) -> Iterator[tuple[int, Reply]]:
        for i, request in enumerate(requests):
            self.requests.append(request)
            begin = len(request.tokens)
            end = min(begin + request.max_new_tokens, 2 + self.length)
            tokens = tuple(range(begin, end))
            is_last = end == 2 + self.length
            reason = "end" if is_last and self.length < 10 else "length"
            yield i, Reply(tokens, tuple(-t / 8 for t in tokens), reason)


def steps(engine, request: Request, tokens_per_step: int, count: int) -> list[Reply | None]:
    """The reply in each of several steps; None where the rollout is paused."""
    replies: list[Reply | None] = []
    recorded: dict[str, RecordedReply] = {}
    for version in range(count):

        async def generate(version=version) -> Reply | None:
            paused = asyncio.Event()
            record = ReplyRecord(recorded, tokens_per_step, lambda: check(record))

            def check(record: ReplyRecord) -> None:
                if record.is_paused:
                    paused.set()

            batcher = RecordingBatcher(CountingBatcher(engine), LIMITS, TOKENIZER, version, record)
            answer = asyncio.ensure_future(batcher(request))
            waiting = asyncio.ensure_future(paused.wait())
            await asyncio.wait({answer, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            recorded.update(record.replies)
            if answer.done():
                return answer.result()
            answer.cancel()
            return None

        replies.append(run_coroutine(generate()))
    return replies


def test_an_answer_is_continued_after_its_own_tokens():
    engine = CountingEngine()
    replies = steps(engine, PROMPT, tokens_per_step=4, count=3)
    assert replies[:2] == [None, None]
    assert [r.tokens for r in engine.requests] == [
        (3, 4),
        (3, 4, 2, 3, 4, 5),
        (3, 4, 2, 3, 4, 5, 6, 7, 8, 9),
    ]
    assert [r.max_new_tokens for r in engine.requests] == [4, 4, 2]
    assert {r.rng_key for r in engine.requests} == {7}
    tokens = tuple(range(2, 12))
    parts = ((0, 4), (1, 4), (2, 2))
    assert replies[2] == Reply(tokens, tuple(-t / 8 for t in tokens), "length", parts=parts)


def test_a_complete_reply_is_returned_without_generation():
    engine = CountingEngine(length=3)
    first, second = steps(engine, PROMPT, tokens_per_step=4, count=2)
    assert first == second
    assert first
    assert (first.finish_reason, first.parts) == ("end", ((0, 3),))
    assert len(engine.requests) == 1


def test_an_answer_that_ends_with_its_step_is_complete():
    assert steps(CountingEngine(), PROMPT, tokens_per_step=5, count=2)[1] is not None
    assert steps(CountingEngine(), PROMPT, tokens_per_step=10, count=1)[0] is not None


def test_the_limit_of_a_request_holds_for_all_parts_together():
    request = Request((3, 4), rng_key=7, max_new_tokens=6)
    engine = CountingEngine()
    _, reply = steps(engine, request, tokens_per_step=4, count=2)
    assert [r.max_new_tokens for r in engine.requests] == [4, 2]
    assert reply
    assert len(reply.tokens) == 6


@pytest.mark.parametrize(
    "request_",
    [
        Request((3, 4), 7, num_scored=1),
        Request((3, 4), 7, aux_head="value"),
        Request((3, 4), 7, num_likeliest=2),
        Request((3, 4), 7, decoding=LockStep(((), ()))),
    ],
)
def test_replies_in_one_piece_are_recorded_whatever_the_limit(request_):
    engine = CountingEngine()
    first, second = steps(engine, request_, tokens_per_step=1, count=2)
    assert first is not None
    assert first == second
    assert len(engine.requests) == 1


def test_recorded_replies_survive_json():
    reply = Reply((1, 2, 3), (-0.1, -1 / 3, -2.0), "length", (0.5, 0.25), 1.5, ((4, 1), (5, 2)))
    reply = replace(reply, next_tokens=(7, 5), continuations=((2, "end"), (1, "length")))
    recorded = RecordedReply(reply, is_complete=False)
    assert RecordedReply.from_data(json.loads(json.dumps(recorded.to_data()))) == recorded


@pytest.mark.parametrize("length", [1, 4, 7, 10])
def test_a_streamed_reply_is_the_reply_of_one_request(length):
    seen = []
    engine = CountingEngine(length)
    streaming = StreamingBatcher(CountingBatcher(engine), LIMITS, TOKENIZER, 0, seen.append)

    async def both() -> tuple[Reply, Reply]:
        return await streaming(PROMPT), await CountingBatcher(CountingEngine(length))(PROMPT)

    streamed, whole = run_coroutine(both())
    assert streamed == whole
    assert seen[-1] == streamed.tokens
    assert [tokens == streamed.tokens[: len(tokens)] for tokens in seen] == [True] * len(seen)
    assert len(seen) == len(engine.requests) > (length > 4)


def test_a_stop_string_across_two_requests_ends_a_streamed_reply():
    tokens = tuple(TOKENIZER("01234567", add_special_tokens=False)["input_ids"])
    assert len(tokens) == 8  # of which a request has 4

    def engine(requests):
        for i, request in enumerate(requests):
            known = len(request.tokens)
            new = tokens[known : known + request.max_new_tokens]
            yield i, Reply(new, (0.0,) * len(new))

    limits = StopConditions(len(tokens), (), stop_strings=("34",))
    streaming = StreamingBatcher(CountingBatcher(engine), limits, TOKENIZER, 0, lambda _: None)

    async def answer() -> Reply:
        return await streaming(Request((), rng_key=1))

    reply = run_coroutine(answer())
    assert (TOKENIZER.decode(reply.tokens), reply.finish_reason) == ("01234", "stop")
