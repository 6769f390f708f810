"""What a method reads, somebody has to say: looked at before any work starts."""

from collections.abc import Collection

from grupo.core.component import walk
from grupo.core.errors import Refused, nearest
from grupo.core.signal_names import compares, is_mark, split, tempered
from grupo.envs import SingleTurn
from grupo.method import Method
from grupo.models.spec import Spec
from grupo.recipe import Recipe


def check_readings(recipe: Recipe) -> None:
    """Refuse a method that reads what neither policy nor world nor anybody else says."""
    _check_others(recipe)
    check_names(recipe.method.needs, _known(recipe))
    _check_signals(recipe.method, recipe.policy)
    _check_parts(recipe)


def check_names(needs: Collection[str], known: Collection[str]) -> None:
    """Refuse a method that reads signals of somebody whom the run does not know."""
    for need in sorted(needs):
        who = split(need)[1]
        if who and who not in known and not tempered(who):
            said = f"method: it reads {need!r}, and the run has no {who!r}."
            raise Refused(f"{said} {nearest(who, known)}")


def _known(recipe: Recipe) -> Collection[str]:
    """Whose signals a run knows besides the policy's."""
    return (*recipe.policy.others, *(other.name for other in recipe.others))


def _check_signals(method: Method, policy: Spec) -> None:
    of_others = [signal for signal in policy.signals if compares(signal)]
    known = [signal for signal in policy.signals if not compares(signal)]
    known += [*(helper.name for helper in method.helpers), "sampled", "moved"]
    for need in sorted(method.needs):
        signal, who = split(need)
        if signal not in (of_others if compares(need) and who else known) and not is_mark(need):
            said = f"method: it reads {need!r}, and the policy has no signal {signal!r}."
            raise Refused(f"{said} {nearest(signal, [*known, *of_others])}")


def _check_others(recipe: Recipe) -> None:
    names = [other.name for other in recipe.others]
    for number, other in enumerate(recipe.others):
        place, taken = f"others[{number}]", other.name in (*recipe.policy.others, *names[:number])
        if taken or not other.name.isidentifier():
            raise Refused(f"{place}.name: {other.name!r}. Allowed: a name that nobody else has.")
        if isinstance(other.who, str) and other.who not in ("policy", "ref"):
            allowed = nearest(other.who, ("policy", "ref"))
            raise Refused(f"{place}.who: {other.who!r} is no model. {allowed}")


def _check_parts(recipe: Recipe) -> None:
    """Refuse a method that reads a part of the reward which the world does not give."""
    if not isinstance(recipe.env, SingleTurn):
        return
    given = [reward.name for reward in recipe.env.rewards]
    given += [x for part in walk(recipe.method.sample) for x in getattr(part, "gives", ())]
    for name in sorted(recipe.method.reads_parts):
        if name.partition("/")[0] not in given:
            said = f"method: it reads {name!r}, and no reward of the env is called so."
            raise Refused(f"{said} {nearest(name, given)}")
