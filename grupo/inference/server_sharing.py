"""Several processes that use the same servers: one of them hands over the weights."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from grupo.inference.engine_errors import EngineError
from grupo.util.errors import ConfigError


@dataclass(frozen=True)
class ServerSharing:
    """How a process agrees with others about the weights that their servers hold.

    Args:
        is_sender: whether this process hands over the weights.
        exchange: the sender's JSON value, which every process gets; each of them calls it.
    """

    is_sender: bool
    exchange: Callable[[Any], Any]

    def send(self, weights: Any) -> None:
        """Tell the others that the servers have the weights."""
        self.exchange({"weights": weights})

    def send_error(self, error: ConfigError | EngineError) -> None:
        """Tell the others that the servers do not have the weights."""
        self.exchange({"is_config_error": isinstance(error, ConfigError), "error": str(error)})

    def receive(self) -> Any:
        """Wait until the servers have the sender's weights; raise the sender's error."""
        message = self.exchange(None)
        if "error" in message:
            raise (ConfigError if message["is_config_error"] else EngineError)(message["error"])
        return message["weights"]


UNSHARED = ServerSharing(True, lambda value: value)
