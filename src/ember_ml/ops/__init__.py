"""Every op, flat: one meaning on every backend.

The sub-namespaces (``ops.stats``, ``ops.linearalg``, ``ops.random``, ``ops.signal``, ``ops.image``) are views of the
same table.
"""

from importlib import import_module

from ember_ml import _lazy

_FAMILIES = ("elementwise", "arrays", "linearalg", "stats", "random", "signal", "image", "neural")
_VIEWS = ("image", "linearalg", "random", "signal", "stats")
_TRANSFORMS = ("gradients", "compilation", "control", "scans", "solvers", "odes")

# Everything is declared here, before a backend is first chosen: choosing one sets the code of every op.
_modules = [module for family in _FAMILIES for module in _lazy.list_modules(f"{__name__}.{family}")]
_modules += [f"ember_ml.transforms.{module}" for module in _TRANSFORMS]
_selection = import_module("ember_ml.backend.selection")
_lazy.show(
    __name__,
    _lazy.import_names(_modules)
    | {view: import_module(f"{__name__}.{view}") for view in _VIEWS}
    | {name: getattr(_selection, name) for name in ("get_backend", "set_backend")},
)
# The operators and methods of tensors are ops, and are made of those declared above.
for _module in ("dispatch.bind_tensor", "autodiff.native_engines", "autodiff.tensor_backward"):
    import_module(f"ember_ml.{_module}")
