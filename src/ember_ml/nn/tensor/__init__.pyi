# Written by utils/make_tables.py: the public names, for editors and type checkers.

from ember_ml.backend.devices import use_device as use_device
from ember_ml.backend.random.generator import Generator as Generator
from ember_ml.core.dtypes import EmberDType as EmberDType
from ember_ml.core.dtypes import bfloat16 as bfloat16
from ember_ml.core.dtypes import bool_ as bool_
from ember_ml.core.dtypes import complex64 as complex64
from ember_ml.core.dtypes import complex128 as complex128
from ember_ml.core.dtypes import float16 as float16
from ember_ml.core.dtypes import float32 as float32
from ember_ml.core.dtypes import float64 as float64
from ember_ml.core.dtypes import int8 as int8
from ember_ml.core.dtypes import int16 as int16
from ember_ml.core.dtypes import int32 as int32
from ember_ml.core.dtypes import int64 as int64
from ember_ml.core.dtypes import uint8 as uint8
from ember_ml.core.dtypes import uint16 as uint16
from ember_ml.core.dtypes import uint32 as uint32
from ember_ml.core.dtypes import uint64 as uint64
from ember_ml.nn.tensor import common as common
from ember_ml.nn.tensor import interfaces as interfaces
from ember_ml.nn.tensor.common.convert import convert_to_tensor as convert_to_tensor
from ember_ml.nn.tensor.common.dtypes import DType as DType
from ember_ml.nn.tensor.common.dtypes import dtype as dtype
from ember_ml.nn.tensor.common.dtypes import from_dtype_str as from_dtype_str
from ember_ml.nn.tensor.common.dtypes import get_dtype as get_dtype
from ember_ml.nn.tensor.common.dtypes import to_dtype_str as to_dtype_str
from ember_ml.ops.arrays.conversion import array as array
from ember_ml.ops.arrays.conversion import asarray as asarray
from ember_ml.ops.arrays.conversion import astype as astype
from ember_ml.ops.arrays.conversion import cast as cast
from ember_ml.ops.arrays.conversion import copy as copy
from ember_ml.ops.arrays.conversion import from_dlpack as from_dlpack
from ember_ml.ops.arrays.conversion import saturate_cast as saturate_cast
from ember_ml.ops.arrays.conversion import stop_gradient as stop_gradient
from ember_ml.ops.arrays.conversion import view as view
from ember_ml.ops.arrays.creation import arange as arange
from ember_ml.ops.arrays.creation import empty as empty
from ember_ml.ops.arrays.creation import empty_like as empty_like
from ember_ml.ops.arrays.creation import eye as eye
from ember_ml.ops.arrays.creation import full as full
from ember_ml.ops.arrays.creation import full_like as full_like
from ember_ml.ops.arrays.creation import geomspace as geomspace
from ember_ml.ops.arrays.creation import identity as identity
from ember_ml.ops.arrays.creation import linspace as linspace
from ember_ml.ops.arrays.creation import logspace as logspace
from ember_ml.ops.arrays.creation import meshgrid as meshgrid
from ember_ml.ops.arrays.creation import ones as ones
from ember_ml.ops.arrays.creation import ones_like as ones_like
from ember_ml.ops.arrays.creation import tri as tri
from ember_ml.ops.arrays.creation import tril_indices as tril_indices
from ember_ml.ops.arrays.creation import triu_indices as triu_indices
from ember_ml.ops.arrays.creation import zeros as zeros
from ember_ml.ops.arrays.creation import zeros_like as zeros_like
from ember_ml.ops.arrays.device import get_available_devices as get_available_devices
from ember_ml.ops.arrays.device import get_default_device as get_default_device
from ember_ml.ops.arrays.device import get_device as get_device
from ember_ml.ops.arrays.device import is_available as is_available
from ember_ml.ops.arrays.device import memory_info as memory_info
from ember_ml.ops.arrays.device import set_default_device as set_default_device
from ember_ml.ops.arrays.device import synchronize as synchronize
from ember_ml.ops.arrays.device import to_device as to_device
from ember_ml.ops.arrays.indexing import argwhere as argwhere
from ember_ml.ops.arrays.indexing import gather as gather
from ember_ml.ops.arrays.indexing import get_item as get_item
from ember_ml.ops.arrays.indexing import index_update as index_update
from ember_ml.ops.arrays.indexing import nonzero as nonzero
from ember_ml.ops.arrays.indexing import put_along_axis as put_along_axis
from ember_ml.ops.arrays.indexing import ravel_multi_index as ravel_multi_index
from ember_ml.ops.arrays.indexing import slice as slice
from ember_ml.ops.arrays.indexing import slice_update as slice_update
from ember_ml.ops.arrays.indexing import take as take
from ember_ml.ops.arrays.indexing import take_along_axis as take_along_axis
from ember_ml.ops.arrays.indexing import unravel_index as unravel_index
from ember_ml.ops.arrays.joining import append as append
from ember_ml.ops.arrays.joining import array_split as array_split
from ember_ml.ops.arrays.joining import column_stack as column_stack
from ember_ml.ops.arrays.joining import concat as concat
from ember_ml.ops.arrays.joining import concatenate as concatenate
from ember_ml.ops.arrays.joining import dsplit as dsplit
from ember_ml.ops.arrays.joining import dstack as dstack
from ember_ml.ops.arrays.joining import hsplit as hsplit
from ember_ml.ops.arrays.joining import hstack as hstack
from ember_ml.ops.arrays.joining import pad as pad
from ember_ml.ops.arrays.joining import repeat as repeat
from ember_ml.ops.arrays.joining import split as split
from ember_ml.ops.arrays.joining import stack as stack
from ember_ml.ops.arrays.joining import tile as tile
from ember_ml.ops.arrays.joining import unstack as unstack
from ember_ml.ops.arrays.joining import vsplit as vsplit
from ember_ml.ops.arrays.joining import vstack as vstack
from ember_ml.ops.arrays.properties import is_tensor as is_tensor
from ember_ml.ops.arrays.properties import item as item
from ember_ml.ops.arrays.properties import ndim as ndim
from ember_ml.ops.arrays.properties import shape as shape
from ember_ml.ops.arrays.properties import size as size
from ember_ml.ops.arrays.properties import to_numpy as to_numpy
from ember_ml.ops.arrays.scatter import in_top_k as in_top_k
from ember_ml.ops.arrays.scatter import multi_hot as multi_hot
from ember_ml.ops.arrays.scatter import one_hot as one_hot
from ember_ml.ops.arrays.scatter import scatter as scatter
from ember_ml.ops.arrays.scatter import scatter_add as scatter_add
from ember_ml.ops.arrays.scatter import scatter_max as scatter_max
from ember_ml.ops.arrays.scatter import scatter_mean as scatter_mean
from ember_ml.ops.arrays.scatter import scatter_min as scatter_min
from ember_ml.ops.arrays.scatter import scatter_update as scatter_update
from ember_ml.ops.arrays.scatter import segment_max as segment_max
from ember_ml.ops.arrays.scatter import segment_mean as segment_mean
from ember_ml.ops.arrays.scatter import segment_min as segment_min
from ember_ml.ops.arrays.scatter import segment_prod as segment_prod
from ember_ml.ops.arrays.scatter import segment_sum as segment_sum
from ember_ml.ops.arrays.searching import bincount as bincount
from ember_ml.ops.arrays.searching import digitize as digitize
from ember_ml.ops.arrays.searching import histogram as histogram
from ember_ml.ops.arrays.searching import searchsorted as searchsorted
from ember_ml.ops.arrays.searching import unique as unique
from ember_ml.ops.arrays.searching import unique_all as unique_all
from ember_ml.ops.arrays.searching import unique_counts as unique_counts
from ember_ml.ops.arrays.searching import unique_inverse as unique_inverse
from ember_ml.ops.arrays.searching import unique_values as unique_values
from ember_ml.ops.arrays.shape import broadcast_arrays as broadcast_arrays
from ember_ml.ops.arrays.shape import broadcast_shapes as broadcast_shapes
from ember_ml.ops.arrays.shape import broadcast_to as broadcast_to
from ember_ml.ops.arrays.shape import expand_dims as expand_dims
from ember_ml.ops.arrays.shape import flatten as flatten
from ember_ml.ops.arrays.shape import flip as flip
from ember_ml.ops.arrays.shape import fliplr as fliplr
from ember_ml.ops.arrays.shape import flipud as flipud
from ember_ml.ops.arrays.shape import matrix_transpose as matrix_transpose
from ember_ml.ops.arrays.shape import moveaxis as moveaxis
from ember_ml.ops.arrays.shape import permute_dims as permute_dims
from ember_ml.ops.arrays.shape import ravel as ravel
from ember_ml.ops.arrays.shape import reshape as reshape
from ember_ml.ops.arrays.shape import roll as roll
from ember_ml.ops.arrays.shape import rot90 as rot90
from ember_ml.ops.arrays.shape import squeeze as squeeze
from ember_ml.ops.arrays.shape import swapaxes as swapaxes
from ember_ml.ops.arrays.shape import transpose as transpose
from ember_ml.ops.arrays.sorting import argpartition as argpartition
from ember_ml.ops.arrays.sorting import argsort as argsort
from ember_ml.ops.arrays.sorting import median as median
from ember_ml.ops.arrays.sorting import nanmedian as nanmedian
from ember_ml.ops.arrays.sorting import nanpercentile as nanpercentile
from ember_ml.ops.arrays.sorting import nanquantile as nanquantile
from ember_ml.ops.arrays.sorting import percentile as percentile
from ember_ml.ops.arrays.sorting import quantile as quantile
from ember_ml.ops.arrays.sorting import sort as sort
from ember_ml.ops.arrays.sorting import top_k as top_k
from ember_ml.ops.linearalg.matrices import diag as diag
from ember_ml.ops.linearalg.matrices import diagflat as diagflat
from ember_ml.ops.linearalg.matrices import tril as tril
from ember_ml.ops.linearalg.matrices import triu as triu
from ember_ml.ops.linearalg.matrices import vander as vander
from ember_ml.ops.random.choices import random_categorical as random_categorical
from ember_ml.ops.random.choices import random_choice as random_choice
from ember_ml.ops.random.choices import random_permutation as random_permutation
from ember_ml.ops.random.choices import shuffle as shuffle
from ember_ml.ops.random.sampling import dropout as dropout
from ember_ml.ops.random.sampling import randint as randint
from ember_ml.ops.random.sampling import random_bernoulli as random_bernoulli
from ember_ml.ops.random.sampling import random_beta as random_beta
from ember_ml.ops.random.sampling import random_binomial as random_binomial
from ember_ml.ops.random.sampling import random_exponential as random_exponential
from ember_ml.ops.random.sampling import random_gamma as random_gamma
from ember_ml.ops.random.sampling import random_gumbel as random_gumbel
from ember_ml.ops.random.sampling import random_integers as random_integers
from ember_ml.ops.random.sampling import random_laplace as random_laplace
from ember_ml.ops.random.sampling import random_normal as random_normal
from ember_ml.ops.random.sampling import random_poisson as random_poisson
from ember_ml.ops.random.sampling import random_truncated_normal as random_truncated_normal
from ember_ml.ops.random.sampling import random_uniform as random_uniform
from ember_ml.ops.random.sampling import seed as seed
from ember_ml.tensor.ember_tensor import EmberTensor as EmberTensor
from ember_ml.typing import DTypeInterface as DTypeInterface
from ember_ml.typing import Numeric as Numeric
from ember_ml.typing import Shape as Shape
from ember_ml.typing import ShapeLike as ShapeLike
from ember_ml.typing import Tensor as Tensor
from ember_ml.typing import TensorInterface as TensorInterface
from ember_ml.typing import TensorLike as TensorLike
from ember_ml.typing import TensorTypes as TensorTypes

__all__ = [
    "DType",
    "DTypeInterface",
    "EmberDType",
    "EmberTensor",
    "Generator",
    "Numeric",
    "Shape",
    "ShapeLike",
    "Tensor",
    "TensorInterface",
    "TensorLike",
    "TensorTypes",
    "append",
    "arange",
    "argpartition",
    "argsort",
    "argwhere",
    "array",
    "array_split",
    "asarray",
    "astype",
    "bfloat16",
    "bincount",
    "bool_",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "cast",
    "column_stack",
    "common",
    "complex64",
    "complex128",
    "concat",
    "concatenate",
    "convert_to_tensor",
    "copy",
    "diag",
    "diagflat",
    "digitize",
    "dropout",
    "dsplit",
    "dstack",
    "dtype",
    "empty",
    "empty_like",
    "expand_dims",
    "eye",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "from_dtype_str",
    "full",
    "full_like",
    "gather",
    "geomspace",
    "get_available_devices",
    "get_default_device",
    "get_device",
    "get_dtype",
    "get_item",
    "histogram",
    "hsplit",
    "hstack",
    "identity",
    "in_top_k",
    "index_update",
    "int8",
    "int16",
    "int32",
    "int64",
    "interfaces",
    "is_available",
    "is_tensor",
    "item",
    "linspace",
    "logspace",
    "matrix_transpose",
    "median",
    "memory_info",
    "meshgrid",
    "moveaxis",
    "multi_hot",
    "nanmedian",
    "nanpercentile",
    "nanquantile",
    "ndim",
    "nonzero",
    "one_hot",
    "ones",
    "ones_like",
    "pad",
    "percentile",
    "permute_dims",
    "put_along_axis",
    "quantile",
    "randint",
    "random_bernoulli",
    "random_beta",
    "random_binomial",
    "random_categorical",
    "random_choice",
    "random_exponential",
    "random_gamma",
    "random_gumbel",
    "random_integers",
    "random_laplace",
    "random_normal",
    "random_permutation",
    "random_poisson",
    "random_truncated_normal",
    "random_uniform",
    "ravel",
    "ravel_multi_index",
    "repeat",
    "reshape",
    "roll",
    "rot90",
    "saturate_cast",
    "scatter",
    "scatter_add",
    "scatter_max",
    "scatter_mean",
    "scatter_min",
    "scatter_update",
    "searchsorted",
    "seed",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_prod",
    "segment_sum",
    "set_default_device",
    "shape",
    "shuffle",
    "size",
    "slice",
    "slice_update",
    "sort",
    "split",
    "squeeze",
    "stack",
    "stop_gradient",
    "swapaxes",
    "synchronize",
    "take",
    "take_along_axis",
    "tile",
    "to_device",
    "to_dtype_str",
    "to_numpy",
    "top_k",
    "transpose",
    "tri",
    "tril",
    "tril_indices",
    "triu",
    "triu_indices",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unravel_index",
    "unstack",
    "use_device",
    "vander",
    "view",
    "vsplit",
    "vstack",
    "zeros",
    "zeros_like",
]
