"""What a recipe says of a policy."""

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from grupo.models.base import Policy

BUILTIN_MODELS = ("ref", "sampler")  # whom every policy can be compared with


@runtime_checkable
class PolicySpec(Protocol):
    """A piece, checked before anything is built."""

    @property
    def model(self) -> str:
        """What it is made of: a folder, or a name on a hub."""
        ...

    @property
    def signals(self) -> tuple[str, ...]:
        """What its policy can say of an action: `entropy`, and of another's, `reverse_kl`."""
        ...

    @property
    def builtin_models(self) -> tuple[str, ...]:
        """Who is always there to be compared with: `ref`, `sampler`."""
        ...

    def check(self) -> None:
        """Refuse what cannot be built, before anything is."""
        ...

    def build(self) -> "Policy":
        """Load it."""
        ...
