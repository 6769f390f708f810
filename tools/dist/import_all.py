"""Imports every module of the installed package; a missing package of an extra is counted."""

import importlib
import pkgutil

import grupo

names = [x.name for x in pkgutil.walk_packages(grupo.__path__, "grupo.")]
names = [name for name in names if not name.startswith("grupo.recipes") and "__main__" not in name]
missing: dict[str, list[str]] = {}
for name in names:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package == "grupo":
            raise
        missing.setdefault(package, []).append(name)
count = len(names) - sum(map(len, missing.values()))
lacking = "".join(f"; {len(modules)} need {package}" for package, modules in missing.items())
print(f"  {count} of {len(names)} modules are imported{lacking}")
