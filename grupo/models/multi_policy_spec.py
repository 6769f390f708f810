"""Several policies that are trained together, told apart by the roles of their rollouts."""

from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.models.multi_policy import LoadedMultiPolicy
from grupo.models.spec import PolicySpec


@component
class RolePolicy:
    """Rollouts of the role `name`, and the policy that acts in them."""

    name: str
    policy: PolicySpec


@component
class MultiPolicy:
    """Policies with weights of their own: `first` acts wherever no other has the role.

    It is asked the tasks and evaluated; what roles there are besides is the method's to say. Each
    learns from its own rollouts. The gradient's norm is clipped over all of them, a micro-batch
    holds as much as the least of their budgets, and each has a reference and helpers of its own.
    """

    main_policy: PolicySpec
    roles: tuple[RolePolicy, ...]

    @property
    def model(self) -> str:
        """What the first is made of."""
        return self.main_policy.model

    @property
    def signals(self) -> tuple[str, ...]:
        """What all of them can say of an action."""
        said = [set(role.policy.signals) for role in self.roles]
        return tuple(
            name for name in self.main_policy.signals if all(name in some for some in said)
        )

    @property
    def builtin_models(self) -> tuple[str, ...]:
        """Who is always there for all of them to be compared with."""
        known = [set(role.policy.builtin_models) for role in self.roles]
        return tuple(
            name for name in self.main_policy.builtin_models if all(name in some for some in known)
        )

    def check(self) -> None:
        """Refuse roles that cannot be told apart."""
        names = [role.name for role in self.roles]
        for number, name in enumerate(names):
            if not name.isidentifier() or name in names[:number]:
                allowed = "Allowed: a name that no other role has."
                raise ConfigError(f"policy.roles[{number}].name: {name!r}. {allowed}")

    def build(self) -> "LoadedMultiPolicy":
        """Load them all."""
        self.check()
        first = self.main_policy.build()
        return LoadedMultiPolicy(first, {role.name: role.policy.build() for role in self.roles})
