"""All attacks on the sandbox, by category."""

from tests.helpers.sandbox_attacks import files, kernel, network, processes, python, resources

CATEGORIES = {
    "files": files,
    "processes": processes,
    "resources": resources,
    "network": network,
    "kernel": kernel,
    "python": python,
}
ATTACKS = {name: module.ATTACKS for name, module in CATEGORIES.items()}
LONE_ATTACKS = (*processes.LONE_ATTACKS, *resources.LONE_ATTACKS)
