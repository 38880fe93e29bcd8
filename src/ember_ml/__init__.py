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


def _support_einops(*_: Any) -> None:
    """Let einops know the portable tensors: it finds what is loaded. There is none before there is a backend."""
    import_module("ember_ml.interop.einops")


# The ops complete EmberTensor, which may be imported from elsewhere. What they make stays: no search for garbage.
_collects = gc.isenabled()
gc.disable()
try:
    import_module("ember_ml.ops")
finally:
    if _collects:
        gc.enable()
_selection = import_module("ember_ml.backend.selection")
_selection.on_switch(_support_einops)
_selection.on_scope(_support_einops)
