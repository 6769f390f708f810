"""Connections, cache and concurrency limit of one endpoint, shared by all event loops."""

import asyncio
import hashlib
import json
import os
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock, Thread
from typing import Any

import openai

from grupo.core.usage import Usage
from grupo.rewards.judges.base import ChatReply, Conversation, JudgeError, ReplyOrError
from grupo.rewards.judges.endpoint_settings import EndpointSettings
from grupo.rewards.judges.reply_cache import CorruptReply, ReplyCache
from grupo.rewards.judges.retries import RequestFailure, failure_of, retrying
from grupo.util.json_text import parse_json, without_lone_surrogates
from grupo.util.reply_limit import UNCOMPRESSED, limit_reply, read_as_utf8
from grupo.util.secret_filter import without_secret
from grupo.util.user_paths import parse_path

MAX_COUNTED_TOKENS = 1 << 40  # of one reply: a larger count is an error of the server
KEY_IN_MESSAGES = "[API key]"  # takes the place of the key, which a server may repeat
MIN_SECRET_CHARS = 8  # a shorter key, such as "none", is no secret, and replies may hold the word


@dataclass(frozen=True)
class ChatResult:
    """The reply to a conversation, or the error that takes its place, and what it took."""

    reply: ReplyOrError
    usage: Usage = field(default_factory=Usage)


class ChatSession:
    """Sends conversations to an endpoint, from an event loop in a thread of its own.

    A run has one event loop for each step, and a client's connections belong to one loop.

    Args:
        endpoint: The endpoint.
    """

    def __init__(self, endpoint: EndpointSettings) -> None:
        self.endpoint = endpoint
        self.api_key = endpoint.api_key()
        self.cache = ReplyCache(parse_path(endpoint.cache)) if endpoint.cache else None
        self.client = openai.AsyncOpenAI(
            api_key=self.api_key or "none",
            base_url=endpoint.base_url,
            timeout=endpoint.time_limit,
            max_retries=0,
            default_headers=UNCOMPRESSED,
            http_client=openai.DefaultAsyncHttpxClient(
                follow_redirects=False, event_hooks={"response": [read_as_utf8, limit_reply]}
            ),
        )
        self.slots = asyncio.Semaphore(endpoint.max_concurrency)
        self.stopped = asyncio.Event()
        self.running: dict[str, asyncio.Task[ChatResult]] = {}  # calls by key, if there is a cache
        started = Future[asyncio.AbstractEventLoop]()
        target = partial(asyncio.run, self._serve(started))
        self.thread = Thread(target=target, name=f"judge {endpoint.model}", daemon=True)
        self.thread.start()
        self.loop = started.result()

    def submit(self, messages: Conversation) -> "Future[ChatResult]":
        """Send a conversation; may be called from any thread."""
        return asyncio.run_coroutine_threadsafe(self._result(messages), self.loop)

    def close(self) -> None:
        """Cancel the calls, close the connections and the cache, and end the thread."""
        self.loop.call_soon_threadsafe(self.stopped.set)
        self.thread.join()
        if self.cache:
            self.cache.close()

    async def _serve(self, started: "Future[asyncio.AbstractEventLoop]") -> None:
        async with self.client:
            started.set_result(asyncio.get_running_loop())
            await self.stopped.wait()

    async def _result(self, messages: Conversation) -> ChatResult:
        """The result from the cache, from a call of the same conversation, or from a new call."""
        request = {**self.endpoint.request_fields, "messages": [dict(m) for m in messages]}
        key = request_key(self.endpoint.base_url, request)
        if not self.cache:
            return await self._call(key, request)
        if task := self.running.get(key):
            result = await asyncio.shield(task)
            return ChatResult(result.reply, _hit(result.reply))
        task = self.running[key] = asyncio.ensure_future(
            self._cached_call(self.cache, key, request)
        )
        task.add_done_callback(lambda _: self.running.pop(key))
        return await asyncio.shield(task)

    async def _cached_call(
        self, cache: ReplyCache, key: str, request: dict[str, Any]
    ) -> ChatResult:
        usage = Usage()
        try:
            if reply := cache.get(key):
                return ChatResult(reply, _hit(reply))
        except CorruptReply:
            usage["judge_cache_corrupted"] = 1.0
            cache.remove(key)
        except JudgeError as error:
            return ChatResult(error)
        result = await self._call(key, request)
        if isinstance(result.reply, JudgeError):
            return result
        try:
            return ChatResult(cache.put(key, result.reply), result.usage | usage)
        except JudgeError as error:
            return ChatResult(error, result.usage)

    async def _call(self, key: str, request: dict[str, Any]) -> ChatResult:
        usage = Usage(judge_retries=0.0)

        def count_retry() -> None:
            usage["judge_retries"] += 1

        try:
            async with self.slots:
                jitter = int(key[:8], 16) / 16**8
                reply = await retrying(self.endpoint, jitter, count_retry)(self._attempt, request)
        except RequestFailure as failure:
            attempts = f", after {usage['judge_retries'] + 1:.0f} attempts" * failure.transient
            message = f"the judge {self.endpoint.model!r} at {self.endpoint.base_url}: {failure}"
            error = JudgeError(await asyncio.to_thread(self._without_key, message + attempts))
            return ChatResult(error, usage | {"judge_failed": 1.0})
        return ChatResult(reply, usage | self._usage(reply))

    async def _attempt(self, request: dict[str, Any]) -> ChatReply:
        model, messages = request["model"], request["messages"]
        others = {name: x for name, x in request.items() if name not in ("model", "messages")}
        create = self.client.chat.completions.with_raw_response.create
        try:
            async with asyncio.timeout(self.endpoint.time_limit):
                # an extra body, because servers have options that the client library lacks
                response = await create(model=model, messages=messages, extra_body=others)
            reply = parse_completion(parse_json(response.text))
            # the filter takes seconds for a long reply, in which those of other calls arrive
            return await asyncio.to_thread(self._reply_without_key, reply)
        except Exception as error:
            raise failure_of(error, self.endpoint) from error

    def _usage(self, reply: ChatReply) -> Usage:
        endpoint = self.endpoint
        prices = endpoint.prompt_price, endpoint.completion_price
        tokens = reply.prompt_tokens, reply.completion_tokens
        cost = sum(price * count for price, count in zip(prices, tokens, strict=True)) / 1e6
        return {
            "judge_calls": 1.0,
            "judge_prompt_tokens": float(reply.prompt_tokens),
            "judge_completion_tokens": float(reply.completion_tokens),
            **({"judge_cost": cost} if endpoint.has_price else {}),
        }

    def _without_key(self, message: str) -> str:
        return without_secret(message, self.api_key, KEY_IN_MESSAGES)

    def _reply_without_key(self, reply: ChatReply) -> ChatReply:
        """The reply as it may be cached, journaled and shown."""
        if len(self.api_key) < MIN_SECRET_CHARS:
            return reply
        return replace(reply, text=self._without_key(reply.text))


def request_key(base_url: str, request: dict[str, Any]) -> str:
    """Hash of an endpoint and of all fields of a request, by which its reply is cached."""
    content = json.dumps([base_url.rstrip("/"), request], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def parse_completion(completion: Any) -> ChatReply:
    """The reply in a response; raises `ValueError` if the response has another shape."""
    match completion:
        case {"choices": [{"message": {"content": str() | None as text}} as choice, *_]}:
            # of other reasons, which the server may invent, none is kept: they could hold the key
            reason = "length" if choice.get("finish_reason") == "length" else "stop"
        case {"choices": [{"message": {"content": content}}, *_]}:
            raise ValueError(f"the content is {str(content)[:80]}, no text")
        case _:
            raise ValueError(f"no choice with a message in {str(completion)[:80]}")
    usage = completion.get("usage") or {}
    counts = (_token_count(usage, name) for name in ("prompt_tokens", "completion_tokens"))
    return ChatReply(without_lone_surrogates(text or ""), reason, *counts)


def _token_count(usage: Any, name: str) -> int:
    """A count in the usage of a response, where it may be missing."""
    count = usage.get(name) if isinstance(usage, Mapping) else usage
    if count is None:
        return 0
    if type(count) is not int or not 0 <= count <= MAX_COUNTED_TOKENS:
        allowed = f"0 to {MAX_COUNTED_TOKENS}"
        raise ValueError(f"usage: {name} is {str(count)[:80]}. Allowed: {allowed}")
    return count


def _hit(reply: ReplyOrError) -> Usage:
    return {"judge_cache_hits": 1.0} if isinstance(reply, ChatReply) else {"judge_failed": 1.0}


_sessions: dict[EndpointSettings, ChatSession] = {}
_sessions_lock = Lock()
os.register_at_fork(after_in_child=_sessions.clear)  # threads do not survive a fork


def open_session(endpoint: EndpointSettings) -> ChatSession:
    """The session of an endpoint in this process; opened at the first call."""
    with _sessions_lock:
        if endpoint not in _sessions:
            _sessions[endpoint] = ChatSession(endpoint)
        return _sessions[endpoint]


def close_sessions() -> None:
    """Close all sessions of this process; a later call opens them again."""
    with _sessions_lock:
        while _sessions:
            _sessions.popitem()[1].close()
