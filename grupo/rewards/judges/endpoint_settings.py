"""Settings of an OpenAI-compatible HTTP endpoint."""

import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from grupo.core.component import check_field, component
from grupo.core.ranges import (
    FiniteSeconds,
    NonEmptyString,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
)
from grupo.util.errors import ConfigError

OWN_FIELDS = ("model", "messages", "temperature", "max_tokens", "seed", "stream", "n")


@component
class EndpointSettings:
    """The fields of `ChatEndpoint`, which documents them."""

    model: NonEmptyString
    base_url: str = "https://api.openai.com/v1"
    api_key_env: str = "OPENAI_API_KEY"
    temperature: NonNegativeFloat | None = 0.0
    max_tokens: PositiveInt | None = 1024
    seed: int | None = None
    options: tuple[tuple[str, str | int | float | bool], ...] = ()
    time_limit: FiniteSeconds = 60.0
    retries: NonNegativeInt = 6
    retry_delay: FiniteSeconds = 1.0
    max_retry_delay: FiniteSeconds = 60.0
    max_concurrency: PositiveInt = 16
    cache: str = "~/.cache/grupo/judge_replies.sqlite"
    prompt_price: NonNegativeFloat = 0.0
    completion_price: NonNegativeFloat = 0.0

    def __post_init__(self) -> None:
        is_url = _is_url(self.base_url)
        check_field(self, "base_url", is_url, "http(s)://host[:port]/path, without a password")
        names = [name for name, _ in self.options]
        is_further = not set(names) & set(OWN_FIELDS) and len(set(names)) == len(names)
        check_field(self, "options", is_further, f"each name once, and none of {OWN_FIELDS}")

    @property
    def has_price(self) -> bool:
        """True if a price is stated."""
        return bool(self.prompt_price or self.completion_price)

    @property
    def request_fields(self) -> dict[str, Any]:
        """The fields of a request besides its messages."""
        sampling = {
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "seed": self.seed,
        }
        given = {name: value for name, value in sampling.items() if value is not None}
        return {"model": self.model, **given, **dict(self.options)}

    @property
    def warnings(self) -> Sequence[str]:
        """Why a run with this judge is not repeatable, if it is not."""
        if self.cache:
            return ()
        return (
            f"The replies of the judge {self.model!r} are not cached: the run is not repeatable,"
            " and a resumed run may differ. A server's replies vary even at temperature 0.",
        )

    def api_key(self) -> str:
        """The key in the environment; raises `ConfigError` if the variable is not set."""
        if not self.api_key_env:
            return ""
        key = os.environ.get(self.api_key_env, "")
        if not key.strip():
            raise ConfigError(
                f"api_key_env: the environment variable {self.api_key_env!r} is not set. Set it to"
                f" the key of {self.base_url}, or write api_key_env='' for a server without keys."
            )
        return key.strip()


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        has_port = parts.port != 0
    except ValueError:
        return False
    has_host = parts.scheme in ("http", "https") and bool(parts.hostname)
    return has_host and has_port and not (parts.username or parts.password or parts.query)
