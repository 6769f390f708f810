"""Several policies, trained or frozen, each with the rollouts of its role."""

from grupo.core.component import component
from grupo.models.base import PolicySpec
from grupo.models.causal_spec import CausalSpec
from grupo.models.multi_policy import LoadedMultiPolicy
from grupo.models.role_actor import DEFAULT_ROLE
from grupo.util.errors import ConfigError


@component
class RolePolicy:
    """A policy for the rollouts of one role.

    Args:
        name: name of the role, an identifier.
        policy: the policy that acts in these rollouts.
        trained: whether it is trained. A frozen policy (False) has no gradient, no optimizer state,
            no reference and no auxiliary heads, and checkpoints do not hold its weights.
    """

    name: str
    policy: PolicySpec
    trained: bool = True


@component
class MultiPolicy:
    """Policies with separate weights, of which some may be frozen.

    Each trained policy learns from the rollouts of its role and has a reference and auxiliary heads
    of its own. A frozen policy generates in the rollouts of its role, which no group may hold.
    The gradient norm is clipped over all of them, and a micro-batch has the size of the smallest
    `tokens_per_microbatch`. The method defines which roles there are.

    Args:
        main_policy: acts in rollouts without a role of `roles`; it attempts the tasks and is
            evaluated.
        roles: the other policies, by role.
        main_trained: whether the main policy is trained; at least one policy must be.
    """

    main_policy: PolicySpec
    roles: tuple[RolePolicy, ...]
    main_trained: bool = True

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
        """Raise `ConfigError` for invalid names of roles, and if no policy can be trained."""
        names = [role.name for role in self.roles]
        for number, name in enumerate(names):
            if not name.isidentifier() or name in names[:number]:
                allowed = "Allowed: a name that no other role has."
                raise ConfigError(f"policy.roles[{number}].name: {name!r}. {allowed}")
        self._check_frozen()
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
        return LoadedMultiPolicy(main_policy, role_policies, self.frozen_roles)

    @property
    def frozen_roles(self) -> frozenset[str]:
        """Roles whose policies are not trained; "" is the role of the main policy."""
        frozen = {role.name for role in self.roles if not role.trained}
        return frozenset(frozen if self.main_trained else {DEFAULT_ROLE, *frozen})

    def _check_frozen(self) -> None:
        """Raise `ConfigError` if all policies are frozen, or a frozen one has new adapters."""
        if len(self.frozen_roles) > len(self.roles):
            raise ConfigError(
                "policy.main_trained: False, and no policy of policy.roles is trained. Allowed:"
                " at least one policy with trained=True, or main_trained=True."
            )
        fields = {f"policy.roles[{i}].policy": role for i, role in enumerate(self.roles)}
        frozen = {field: role.policy for field, role in fields.items() if not role.trained}
        if not self.main_trained:
            frozen["policy.main_policy"] = self.main_policy
        for field, policy in frozen.items():
            if isinstance(policy, CausalSpec) and policy.lora and not policy.start:
                raise ConfigError(
                    f"{field}.lora: {policy.lora!r}. Allowed with a frozen policy: None, because"
                    " new adapters that are not trained change nothing."
                )
