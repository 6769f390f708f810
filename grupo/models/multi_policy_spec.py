"""Several policies that are trained together, each on the rollouts of its role."""

from grupo.core.component import component
from grupo.models.base import PolicySpec
from grupo.models.causal_spec import CausalSpec
from grupo.models.multi_policy import LoadedMultiPolicy
from grupo.util.errors import ConfigError


@component
class RolePolicy:
    """A policy for the rollouts of one role.

    Args:
        name: name of the role, an identifier.
        policy: the policy that acts in these rollouts.
    """

    name: str
    policy: PolicySpec


@component
class MultiPolicy:
    """Policies with separate weights that are trained together.

    Each learns from the rollouts of its role and has a reference and auxiliary heads of its own.
    The gradient norm is clipped over all of them, and a micro-batch has the size of the smallest
    `tokens_per_microbatch`. The method defines which roles there are.

    Args:
        main_policy: acts in rollouts without a role of `roles`; it attempts the tasks and is
            evaluated.
        roles: the other policies, by role.
    """

    main_policy: PolicySpec
    roles: tuple[RolePolicy, ...]

    @property
    def model(self) -> object:
        """The model of the main policy."""
        return self.main_policy.model

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the signals that all policies have."""
        others = [set(role.policy.signals) for role in self.roles]
        return tuple(n for n in self.main_policy.signals if all(n in names for names in others))

    @property
    def builtin_models(self) -> tuple[str, ...]:
        """Models that need no configuration with any of the policies."""
        others = [set(role.policy.builtin_models) for role in self.roles]
        return tuple(
            n for n in self.main_policy.builtin_models if all(n in names for names in others)
        )

    def check(self) -> None:
        """Raise `ConfigError` for a role's name that is no identifier or occurs twice."""
        names = [role.name for role in self.roles]
        for number, name in enumerate(names):
            if not name.isidentifier() or name in names[:number]:
                allowed = "Allowed: a name that no other role has."
                raise ConfigError(f"policy.roles[{number}].name: {name!r}. {allowed}")
        for policy in (self.main_policy, *(role.policy for role in self.roles)):
            if isinstance(policy, CausalSpec) and policy.router_aux_loss:
                raise ConfigError(
                    f"router_aux_loss: {policy.router_aux_loss!r}. Allowed with several policies:"
                    " 0, because their rows are divided among them."
                )

    def build(self) -> "LoadedMultiPolicy":
        """Load all policies."""
        self.check()
        main_policy = self.main_policy.build()
        role_policies = {role.name: role.policy.build() for role in self.roles}
        return LoadedMultiPolicy(main_policy, role_policies)
