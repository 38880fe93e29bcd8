"""Ember ML: machine-learning code that is independent of the library which computes it.

``ops`` holds the operations, ``nn.tensor`` the portable tensors, ``set_backend`` chooses who computes.
"""

import gc
from importlib import import_module
from typing import Any

from ember_ml import _lazy

_PARTS = ("backend", "datasets", "distributed", "errors", "features", "memory", "models", "nn", "ops", "training")
_SELECTION = ("auto_select_backend", "get_backend", "get_backend_module", "set_backend", "use_backend")
_TRANSFORMS = (
    *("checkpoint", "compile", "custom_gradient", "grad", "hessian", "jacobian", "jvp", "stop_gradient"),
    *("value_and_grad", "vjp", "vmap"),
)

_find, __dir__ = _lazy.attach(
    __name__,
    {
        "EmberDType": "ember_ml.core.dtypes:EmberDType",
        "EmberTensor": "ember_ml.tensor:EmberTensor",
        "autocast": "ember_ml.dispatch.autocast:autocast",
        "dtypes": "ember_ml.core.dtypes",
        "einops_support": "ember_ml.interop.einops",
        "find_nan": "ember_ml.nn.inspection.nan_search:find_nan",
        "profile": "ember_ml.nn.inspection.profiling:profile",
        "registry": "ember_ml.config.registry",
        "set_value_checks": "ember_ml.backend.value_checks:set_value_checks",
        "value_checks": "ember_ml.backend.value_checks:value_checks",
        **{part: f"ember_ml.{part}" for part in _PARTS},
        **{name: f"ember_ml.backend.selection:{name}" for name in _SELECTION},
        **{name: f"ember_ml.ops:{name}" for name in _TRANSFORMS},
    },
)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # slow to import, and rarely asked for

        return version("ember-ml")
    return _find(name)


# The ops complete EmberTensor, which may be imported from elsewhere; einops finds its support only once that is loaded.
# What they make stays: to look for garbage among it would take an eighth of the import.
_collects = gc.isenabled()
gc.disable()
try:
    import_module("ember_ml.ops")
    import_module("ember_ml.interop.einops")
finally:
    if _collects:
        gc.enable()
