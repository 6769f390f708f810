"""Bearer tokens of servers, which are read from environment variables and never written."""

import os
from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import urlsplit

from grupo.util.errors import ConfigError
from grupo.util.secret_filter import without_secret

T = TypeVar("T")
TOKEN_IN_TEXTS = "[token]"  # takes the token's place in texts of a server


def bearer_token(token_env: str) -> str:
    """The token in the environment; "" without a variable.

    Args:
        token_env: Name of the environment variable; "" for a server without tokens.

    Raises:
        ConfigError: The variable is not set, or its value cannot be sent.
    """
    token = os.environ.get(token_env, "") if token_env else ""
    if token_env and not token:
        raise ConfigError(f"token_env: the environment variable {token_env!r} is not set.")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(
            f"token_env: the value of {token_env!r} is no token."
            " Allowed: printable ASCII characters without spaces."
        )
    return token


def auth_headers(token_env: str) -> Mapping[str, str]:
    """The HTTP headers of requests: the token if there is one."""
    token = bearer_token(token_env)
    return {"Authorization": f"Bearer {token}"} if token else {}


def without_token(data: T, token_env: str) -> T:
    """Data of a server without the token, in any encoding, for the run folder and the policy.

    Args:
        data: A text, or JSON data, whose texts belong together.
        token_env: Name of the environment variable; "" for a server without tokens.
    """
    token = os.environ.get(token_env, "") if token_env else ""
    return without_secret(data, token, TOKEN_IN_TEXTS)


def check_url(field: str, url: str) -> None:
    """Raise `ConfigError` for a URL with a password, which a recipe would keep.

    Args:
        field: The field of the URL, for the message.
        url: The URL.
    """
    parts = urlsplit(url)
    if parts.username or parts.password:
        raise ConfigError(
            f"{field}: the URL holds a user name or a password. Write a token into an environment"
            " variable, and its name into token_env."
        )
