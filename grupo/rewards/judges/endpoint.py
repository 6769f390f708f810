"""Models behind an OpenAI-compatible HTTP endpoint, as judges."""

import asyncio
from collections.abc import Sequence
from typing import Any

from grupo.core.component import component
from grupo.core.usage import add_external_usage
from grupo.rewards.judges.base import Conversation, ReplyOrError
from grupo.rewards.judges.endpoint_settings import EndpointSettings
from grupo.util.optional_deps import optional_dependency


@component
class ChatEndpoint(EndpointSettings):
    """A model behind an OpenAI-compatible endpoint: a provider's, or a server such as vLLM's.

    A request that fails with status 408, 409, 425, 429 or 5xx, with a timeout, a broken connection
    or a broken reply is repeated after an exponentially growing delay, or after the delay that the
    server requests (Retry-After). Replies are cached on disk, so that a resumed or repeated run has
    the same rewards.

    Args:
        model: Name of the model at the endpoint.
        base_url: Address of the endpoint, up to and including `/v1`.
        api_key_env: Environment variable that holds the key; "" for an endpoint without keys. The
            key itself is written nowhere.
        temperature: Sampling temperature; None leaves it to the endpoint.
        max_tokens: Token limit of a reply, as the request's `max_tokens`; None sends none. A reply
            that reaches it is an error.
        seed: Seed of the endpoint's sampling; None sends none.
        options: Further fields of the request: (("reasoning_effort", "low"),).
        time_limit: Seconds that one attempt may take.
        retries: Attempts after the first one.
        retry_delay: Seconds before the first of them, doubled before each further one.
        max_retry_delay: Longest delay in seconds. A server that requests more fails the call.
        max_concurrency: Requests of this process that run at the same time.
        cache: File of the replies; "" caches none, and the run is then not repeatable.
        prompt_price: Price of a million prompt tokens, for the metric `usage/judge_cost`.
        completion_price: Price of a million tokens of replies, likewise.
    """

    def check(self) -> None:
        """Raise `ConfigError` if the client library or the key is missing."""
        with optional_dependency("openai", "judges"):
            import openai  # noqa: F401
        self.api_key()

    def prepare(self) -> None:
        self._session()

    async def complete(self, conversations: Sequence[Conversation]) -> Sequence[ReplyOrError]:
        session = self._session()
        calls = (asyncio.wrap_future(session.submit(messages)) for messages in conversations)
        results = await asyncio.gather(*calls)
        for result in results:
            add_external_usage(result.usage)
        return [result.reply for result in results]

    def _session(self) -> Any:
        self.check()
        from grupo.rewards.judges.session import open_session

        return open_session(self)
