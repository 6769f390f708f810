"""Attacks on the sandbox: every backend refuses each of them; without a sandbox they succeed."""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from tests.helpers.sandbox_attacks.attack import Attack, LoneAttack
from tests.helpers.sandbox_attacks.host import (
    DRIVER,
    closed_folder,
    planted_host,
    program_parameters,
    run_controls,
    run_driver,
)
from tests.helpers.sandbox_attacks.outside import run_outside
from tests.helpers.sandbox_attacks.programs import attack_program, verdicts
from tests.helpers.sandbox_attacks.table import ATTACKS, LONE_ATTACKS

GROUPED = [attack for attacks in ATTACKS.values() for attack in attacks]
TIME_LIMIT = 40.0
ENDLESS_LIMITS = {"Bubblewrap": 0.7, "Gvisor": 4.0, "Container": 4.0}
# refused to root of this machine, or unknown to its kernel: there is nothing to compare with
MACHINE_ERRORS = (
    "PermissionError",
    "FileNotFoundError",
    "OSError(38,",
    "OSError(97,",
    "OSError(93,",
)
SLOW = pytest.mark.slow
SEVERAL = 20  # processes and threads of a sandbox that allows them
CASES = [
    pytest.param((backend, user, (), None), id=f"{backend}-{user}", marks=marks)
    for backend in ("Bubblewrap", "Gvisor", "Container")
    for user in ("this user", "ordinary user")
    for marks in [() if (backend, user) == ("Bubblewrap", "ordinary user") else SLOW]
]
CASES += [
    pytest.param((backend, user, packages, processes), id=f"{backend}-{user}-{name}", marks=SLOW)
    for user in ("this user", "ordinary user")
    for backend, packages, processes, name in (
        ("Bubblewrap", ("numpy", "scipy"), None, "packages"),
        ("Gvisor", ("numpy", "scipy"), None, "packages"),
        ("Bubblewrap", (), SEVERAL, "several processes"),
        ("Container", (), SEVERAL, "several processes"),
    )
]


@dataclass(frozen=True)
class _MustRefuse:
    """Whether a sandbox must refuse an attack."""

    backend: str
    allows_processes: bool

    def __call__(self, attack: Attack | LoneAttack) -> bool:
        is_allowed = self.allows_processes and attack.is_allowed_to_programs
        return self.backend in attack.backends and not is_allowed


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    with planted_host(tmp_path_factory.mktemp("host")) as parameters:
        yield parameters


@pytest.fixture(scope="module", params=CASES)
def answers(request, host):
    """The backend, its verdicts and answers, and which attacks it must refuse."""
    backend, user, packages, processes = request.param
    if user == "ordinary user" and os.getuid() != 0:
        pytest.skip("only root can start a sandbox as another user")
    if user == "ordinary user" and (closed := closed_folder(DRIVER)):
        pytest.skip(f"an ordinary user may not enter {closed}")
    if user == "ordinary user" and backend == "Container":
        pytest.skip("the ordinary user has no container engine")
    parameters = program_parameters(host)
    programs = [
        (category, attack_program(attacks, parameters), TIME_LIMIT)
        for category, attacks in ATTACKS.items()
    ]
    limits = {True: ENDLESS_LIMITS[backend], False: TIME_LIMIT}
    programs += [(attack.name, attack.code, limits[attack.is_endless]) for attack in LONE_ATTACKS]
    outputs = run_driver(host, backend, programs, user, packages, processes)
    if "refused" in outputs:
        pytest.skip(outputs["refused"])
    results = {}
    for category in ATTACKS:
        results |= verdicts(outputs[category])
    return _MustRefuse(backend, allows_processes=bool(processes)), results, outputs


@pytest.fixture(scope="module")
def controls(host):
    """Verdicts of the same attacks outside of a sandbox."""
    return run_controls(host, GROUPED)


@pytest.fixture(scope="module")
def lone_controls(host):
    def run(attack: LoneAttack):
        time_limit = ENDLESS_LIMITS["Bubblewrap"] if attack.is_endless else TIME_LIMIT
        return attack.name, run_outside(attack.code, host["folder"], time_limit)

    with ThreadPoolExecutor(8) as pool:
        return dict(pool.map(run, LONE_ATTACKS))


@pytest.mark.slow
@pytest.mark.parametrize("category", ATTACKS)
def test_attacks_are_refused(answers, category):
    must_refuse_attack, results, outputs = answers
    names = {attack.name for attack in ATTACKS[category]}
    assert names <= set(results), outputs[category][-2000:]
    must_refuse = {attack.name for attack in ATTACKS[category] if must_refuse_attack(attack)}
    verdicts_of_others = {results[name].split(":")[0] for name in names - must_refuse}
    assert {name: results[name] for name in must_refuse if not _is_refused(results[name])} == {}
    assert verdicts_of_others <= {"refused", "succeeded"}


@pytest.mark.slow
@pytest.mark.parametrize("category", ATTACKS)
def test_attacks_succeed_without_a_sandbox(controls, category):
    outside = {
        a.name: controls[a.name] for a in ATTACKS[category] if not _has_no_control(a, controls)
    }
    assert len(outside) > len(ATTACKS[category]) / 2 or os.getuid() != 0
    assert {name: v for name, v in outside.items() if v != "succeeded"} == {}


def test_programs_are_contained(answers):
    must_refuse_attack, _, outputs = answers
    attacks = list(filter(must_refuse_attack, LONE_ATTACKS))
    escaped = [a.name for a in attacks if not re.search(a.refused, outputs[a.name])]
    assert {name: outputs[name][-200:] for name in escaped} == {}


@pytest.mark.slow
def test_programs_are_not_contained_without_a_sandbox(lone_controls):
    contained = [a.name for a in LONE_ATTACKS if not re.search(a.control, lone_controls[a.name])]
    assert {name: lone_controls[name][-200:] for name in contained} == {}


def _is_refused(verdict: str) -> bool:
    return verdict.startswith("refused")


def _has_no_control(attack: Attack, controls: dict[str, str]) -> bool:
    """True if this machine or this user lacks what the attack needs, also without a sandbox."""
    verdict = controls[attack.name]
    lacks_privilege = os.getuid() != 0 and "PermissionError" in verdict
    is_missing = attack.is_optional and any(error in verdict for error in MACHINE_ERRORS)
    return _is_refused(verdict) and (lacks_privilege or is_missing)


@pytest.mark.slow
def test_there_are_150_attacks_with_a_control(controls):
    names = [attack.name for attack in (*GROUPED, *LONE_ATTACKS)]
    assert len(set(names)) == len(names)
    if os.getuid() != 0:
        pytest.skip("many controls need root")
    succeeded = sum(controls[attack.name] == "succeeded" for attack in GROUPED)
    assert succeeded + len(LONE_ATTACKS) >= 150
