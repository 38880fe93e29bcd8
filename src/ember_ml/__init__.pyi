# Written by utils/make_tables.py: the public names, for editors and type checkers.

from ember_ml import backend as backend
from ember_ml import datasets as datasets
from ember_ml import distributed as distributed
from ember_ml import errors as errors
from ember_ml import features as features
from ember_ml import memory as memory
from ember_ml import models as models
from ember_ml import nn as nn
from ember_ml import ops as ops
from ember_ml import training as training
from ember_ml.backend.selection import auto_select_backend as auto_select_backend
from ember_ml.backend.selection import get_backend as get_backend
from ember_ml.backend.selection import get_backend_module as get_backend_module
from ember_ml.backend.selection import set_backend as set_backend
from ember_ml.backend.selection import use_backend as use_backend
from ember_ml.backend.value_checks import set_value_checks as set_value_checks
from ember_ml.backend.value_checks import value_checks as value_checks
from ember_ml.config import registry as registry
from ember_ml.core import dtypes as dtypes
from ember_ml.core.dtypes import EmberDType as EmberDType
from ember_ml.dispatch.autocast import autocast as autocast
from ember_ml.interop import einops as einops_support
from ember_ml.nn.inspection.nan_search import find_nan as find_nan
from ember_ml.nn.inspection.profiling import profile as profile
from ember_ml.ops.arrays.conversion import stop_gradient as stop_gradient
from ember_ml.tensor.ember_tensor import EmberTensor as EmberTensor
from ember_ml.transforms.compilation import compile as compile
from ember_ml.transforms.gradients import checkpoint as checkpoint
from ember_ml.transforms.gradients import custom_gradient as custom_gradient
from ember_ml.transforms.gradients import grad as grad
from ember_ml.transforms.gradients import hessian as hessian
from ember_ml.transforms.gradients import jacobian as jacobian
from ember_ml.transforms.gradients import jvp as jvp
from ember_ml.transforms.gradients import value_and_grad as value_and_grad
from ember_ml.transforms.gradients import vjp as vjp
from ember_ml.transforms.gradients import vmap as vmap

__version__: str
__all__ = [
    "EmberDType",
    "EmberTensor",
    "auto_select_backend",
    "autocast",
    "backend",
    "checkpoint",
    "compile",
    "custom_gradient",
    "datasets",
    "distributed",
    "dtypes",
    "einops_support",
    "errors",
    "features",
    "find_nan",
    "get_backend",
    "get_backend_module",
    "grad",
    "hessian",
    "jacobian",
    "jvp",
    "memory",
    "models",
    "nn",
    "ops",
    "profile",
    "registry",
    "set_backend",
    "set_value_checks",
    "stop_gradient",
    "training",
    "use_backend",
    "value_and_grad",
    "value_checks",
    "vjp",
    "vmap",
]
