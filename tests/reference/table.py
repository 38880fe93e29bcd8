"""Every reference, collected: each module of this package adds its own when it is imported."""

from importlib import import_module
from pkgutil import iter_modules

from tests import reference
from tests.reference.spec import SPECS

__all__ = ["SPECS"]

for _module in iter_modules(reference.__path__):
    if _module.name != "table":
        import_module(f"{reference.__name__}.{_module.name}")
