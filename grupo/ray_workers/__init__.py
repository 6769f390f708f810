"""Ray as an extra: environments, with their judges, and servers placed on a cluster.

`OnRay` is an environment of a recipe whose calls run in actors; `grupo serve --ray` runs servers.
"""

from grupo.ray_workers.on_ray import OnRay

__all__ = ["OnRay"]
