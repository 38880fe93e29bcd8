# Written by utils/make_tables.py: the public names, for editors and type checkers.

from ember_ml.backend.devices import use_device as use_device
from ember_ml.backend.random.generator import Generator as Generator
from ember_ml.backend.selection import get_backend as get_backend
from ember_ml.backend.selection import set_backend as set_backend
from ember_ml.core.dtypes import bfloat16 as bfloat16
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
from ember_ml.ops import image as image
from ember_ml.ops import linearalg as linearalg
from ember_ml.ops import random as random
from ember_ml.ops import signal as signal
from ember_ml.ops import stats as stats
from ember_ml.ops.arrays.conversion import array as array
from ember_ml.ops.arrays.conversion import asarray as asarray
from ember_ml.ops.arrays.conversion import astype as astype
from ember_ml.ops.arrays.conversion import cast as cast
from ember_ml.ops.arrays.conversion import convert_to_tensor as convert_to_tensor
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
from ember_ml.ops.arrays.dtypes import FInfo as FInfo
from ember_ml.ops.arrays.dtypes import IInfo as IInfo
from ember_ml.ops.arrays.dtypes import bool as bool
from ember_ml.ops.arrays.dtypes import can_cast as can_cast
from ember_ml.ops.arrays.dtypes import finfo as finfo
from ember_ml.ops.arrays.dtypes import iinfo as iinfo
from ember_ml.ops.arrays.dtypes import isdtype as isdtype
from ember_ml.ops.arrays.dtypes import result_type as result_type
from ember_ml.ops.arrays.files import load as load
from ember_ml.ops.arrays.files import save as save
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
from ember_ml.ops.arrays.properties import dtype as dtype
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
from ember_ml.ops.elementwise.arithmetic import abs as abs
from ember_ml.ops.elementwise.arithmetic import absolute as absolute
from ember_ml.ops.elementwise.arithmetic import add as add
from ember_ml.ops.elementwise.arithmetic import ceil as ceil
from ember_ml.ops.elementwise.arithmetic import clip as clip
from ember_ml.ops.elementwise.arithmetic import divide as divide
from ember_ml.ops.elementwise.arithmetic import divide_no_nan as divide_no_nan
from ember_ml.ops.elementwise.arithmetic import fabs as fabs
from ember_ml.ops.elementwise.arithmetic import floor as floor
from ember_ml.ops.elementwise.arithmetic import floor_divide as floor_divide
from ember_ml.ops.elementwise.arithmetic import fmax as fmax
from ember_ml.ops.elementwise.arithmetic import fmin as fmin
from ember_ml.ops.elementwise.arithmetic import fmod as fmod
from ember_ml.ops.elementwise.arithmetic import gcd as gcd
from ember_ml.ops.elementwise.arithmetic import heaviside as heaviside
from ember_ml.ops.elementwise.arithmetic import lcm as lcm
from ember_ml.ops.elementwise.arithmetic import maximum as maximum
from ember_ml.ops.elementwise.arithmetic import minimum as minimum
from ember_ml.ops.elementwise.arithmetic import mod as mod
from ember_ml.ops.elementwise.arithmetic import multiply as multiply
from ember_ml.ops.elementwise.arithmetic import nan_to_num as nan_to_num
from ember_ml.ops.elementwise.arithmetic import negative as negative
from ember_ml.ops.elementwise.arithmetic import positive as positive
from ember_ml.ops.elementwise.arithmetic import pow as pow
from ember_ml.ops.elementwise.arithmetic import power as power
from ember_ml.ops.elementwise.arithmetic import reciprocal as reciprocal
from ember_ml.ops.elementwise.arithmetic import remainder as remainder
from ember_ml.ops.elementwise.arithmetic import round as round
from ember_ml.ops.elementwise.arithmetic import sign as sign
from ember_ml.ops.elementwise.arithmetic import square as square
from ember_ml.ops.elementwise.arithmetic import subtract as subtract
from ember_ml.ops.elementwise.arithmetic import true_divide as true_divide
from ember_ml.ops.elementwise.arithmetic import trunc as trunc
from ember_ml.ops.elementwise.bitwise import bitwise_and as bitwise_and
from ember_ml.ops.elementwise.bitwise import bitwise_invert as bitwise_invert
from ember_ml.ops.elementwise.bitwise import bitwise_left_shift as bitwise_left_shift
from ember_ml.ops.elementwise.bitwise import bitwise_not as bitwise_not
from ember_ml.ops.elementwise.bitwise import bitwise_or as bitwise_or
from ember_ml.ops.elementwise.bitwise import bitwise_right_shift as bitwise_right_shift
from ember_ml.ops.elementwise.bitwise import bitwise_xor as bitwise_xor
from ember_ml.ops.elementwise.comparison import allclose as allclose
from ember_ml.ops.elementwise.comparison import equal as equal
from ember_ml.ops.elementwise.comparison import greater as greater
from ember_ml.ops.elementwise.comparison import greater_equal as greater_equal
from ember_ml.ops.elementwise.comparison import isclose as isclose
from ember_ml.ops.elementwise.comparison import isfinite as isfinite
from ember_ml.ops.elementwise.comparison import isin as isin
from ember_ml.ops.elementwise.comparison import isinf as isinf
from ember_ml.ops.elementwise.comparison import isnan as isnan
from ember_ml.ops.elementwise.comparison import isneginf as isneginf
from ember_ml.ops.elementwise.comparison import isposinf as isposinf
from ember_ml.ops.elementwise.comparison import isreal as isreal
from ember_ml.ops.elementwise.comparison import less as less
from ember_ml.ops.elementwise.comparison import less_equal as less_equal
from ember_ml.ops.elementwise.comparison import logical_and as logical_and
from ember_ml.ops.elementwise.comparison import logical_not as logical_not
from ember_ml.ops.elementwise.comparison import logical_or as logical_or
from ember_ml.ops.elementwise.comparison import logical_xor as logical_xor
from ember_ml.ops.elementwise.comparison import not_equal as not_equal
from ember_ml.ops.elementwise.comparison import select as select
from ember_ml.ops.elementwise.comparison import where as where
from ember_ml.ops.elementwise.complex import angle as angle
from ember_ml.ops.elementwise.complex import conj as conj
from ember_ml.ops.elementwise.complex import conjugate as conjugate
from ember_ml.ops.elementwise.complex import imag as imag
from ember_ml.ops.elementwise.complex import polar as polar
from ember_ml.ops.elementwise.complex import real as real
from ember_ml.ops.elementwise.exponential import cbrt as cbrt
from ember_ml.ops.elementwise.exponential import exp as exp
from ember_ml.ops.elementwise.exponential import exp2 as exp2
from ember_ml.ops.elementwise.exponential import expm1 as expm1
from ember_ml.ops.elementwise.exponential import log as log
from ember_ml.ops.elementwise.exponential import log1p as log1p
from ember_ml.ops.elementwise.exponential import log2 as log2
from ember_ml.ops.elementwise.exponential import log10 as log10
from ember_ml.ops.elementwise.exponential import logaddexp as logaddexp
from ember_ml.ops.elementwise.exponential import logaddexp2 as logaddexp2
from ember_ml.ops.elementwise.exponential import rsqrt as rsqrt
from ember_ml.ops.elementwise.exponential import sqrt as sqrt
from ember_ml.ops.elementwise.float_bits import copysign as copysign
from ember_ml.ops.elementwise.float_bits import ldexp as ldexp
from ember_ml.ops.elementwise.float_bits import nextafter as nextafter
from ember_ml.ops.elementwise.float_bits import signbit as signbit
from ember_ml.ops.elementwise.special import digamma as digamma
from ember_ml.ops.elementwise.special import erf as erf
from ember_ml.ops.elementwise.special import erfc as erfc
from ember_ml.ops.elementwise.special import erfinv as erfinv
from ember_ml.ops.elementwise.special import i0 as i0
from ember_ml.ops.elementwise.special import lgamma as lgamma
from ember_ml.ops.elementwise.special import xlogy as xlogy
from ember_ml.ops.elementwise.trigonometry import acos as acos
from ember_ml.ops.elementwise.trigonometry import acosh as acosh
from ember_ml.ops.elementwise.trigonometry import arccos as arccos
from ember_ml.ops.elementwise.trigonometry import arccosh as arccosh
from ember_ml.ops.elementwise.trigonometry import arcsin as arcsin
from ember_ml.ops.elementwise.trigonometry import arcsinh as arcsinh
from ember_ml.ops.elementwise.trigonometry import arctan as arctan
from ember_ml.ops.elementwise.trigonometry import arctan2 as arctan2
from ember_ml.ops.elementwise.trigonometry import arctanh as arctanh
from ember_ml.ops.elementwise.trigonometry import asin as asin
from ember_ml.ops.elementwise.trigonometry import asinh as asinh
from ember_ml.ops.elementwise.trigonometry import atan as atan
from ember_ml.ops.elementwise.trigonometry import atan2 as atan2
from ember_ml.ops.elementwise.trigonometry import atanh as atanh
from ember_ml.ops.elementwise.trigonometry import cos as cos
from ember_ml.ops.elementwise.trigonometry import cosh as cosh
from ember_ml.ops.elementwise.trigonometry import deg2rad as deg2rad
from ember_ml.ops.elementwise.trigonometry import hypot as hypot
from ember_ml.ops.elementwise.trigonometry import rad2deg as rad2deg
from ember_ml.ops.elementwise.trigonometry import sin as sin
from ember_ml.ops.elementwise.trigonometry import sinc as sinc
from ember_ml.ops.elementwise.trigonometry import sinh as sinh
from ember_ml.ops.elementwise.trigonometry import tan as tan
from ember_ml.ops.elementwise.trigonometry import tanh as tanh
from ember_ml.ops.image.colours import hsv_to_rgb as hsv_to_rgb
from ember_ml.ops.image.colours import rgb_to_grayscale as rgb_to_grayscale
from ember_ml.ops.image.colours import rgb_to_hsv as rgb_to_hsv
from ember_ml.ops.image.colours import rgb_to_yuv as rgb_to_yuv
from ember_ml.ops.image.colours import yuv_to_rgb as yuv_to_rgb
from ember_ml.ops.image.comparing import gaussian_blur as gaussian_blur
from ember_ml.ops.image.comparing import psnr as psnr
from ember_ml.ops.image.comparing import ssim as ssim
from ember_ml.ops.image.cropping import center_crop as center_crop
from ember_ml.ops.image.cropping import crop_images as crop_images
from ember_ml.ops.image.cropping import extract_patches as extract_patches
from ember_ml.ops.image.cropping import pad_images as pad_images
from ember_ml.ops.image.resizing import resize as resize
from ember_ml.ops.image.resizing import scale_and_translate as scale_and_translate
from ember_ml.ops.image.warping import affine_transform as affine_transform
from ember_ml.ops.image.warping import map_coordinates as map_coordinates
from ember_ml.ops.image.warping import perspective_transform as perspective_transform
from ember_ml.ops.image.warping import rotate as rotate
from ember_ml.ops.linearalg.factorizations import cholesky as cholesky
from ember_ml.ops.linearalg.factorizations import eig as eig
from ember_ml.ops.linearalg.factorizations import eigh as eigh
from ember_ml.ops.linearalg.factorizations import eigvals as eigvals
from ember_ml.ops.linearalg.factorizations import eigvalsh as eigvalsh
from ember_ml.ops.linearalg.factorizations import lu_factor as lu_factor
from ember_ml.ops.linearalg.factorizations import qr as qr
from ember_ml.ops.linearalg.factorizations import svd as svd
from ember_ml.ops.linearalg.factorizations import svdvals as svdvals
from ember_ml.ops.linearalg.linear_systems import cholesky_inverse as cholesky_inverse
from ember_ml.ops.linearalg.linear_systems import det as det
from ember_ml.ops.linearalg.linear_systems import expm as expm
from ember_ml.ops.linearalg.linear_systems import inv as inv
from ember_ml.ops.linearalg.linear_systems import logdet as logdet
from ember_ml.ops.linearalg.linear_systems import lstsq as lstsq
from ember_ml.ops.linearalg.linear_systems import lu_solve as lu_solve
from ember_ml.ops.linearalg.linear_systems import matrix_power as matrix_power
from ember_ml.ops.linearalg.linear_systems import matrix_rank as matrix_rank
from ember_ml.ops.linearalg.linear_systems import pinv as pinv
from ember_ml.ops.linearalg.linear_systems import slogdet as slogdet
from ember_ml.ops.linearalg.linear_systems import solve as solve
from ember_ml.ops.linearalg.linear_systems import solve_triangular as solve_triangular
from ember_ml.ops.linearalg.matrices import diag as diag
from ember_ml.ops.linearalg.matrices import diagflat as diagflat
from ember_ml.ops.linearalg.matrices import tril as tril
from ember_ml.ops.linearalg.matrices import triu as triu
from ember_ml.ops.linearalg.matrices import vander as vander
from ember_ml.ops.linearalg.norms import cdist as cdist
from ember_ml.ops.linearalg.norms import cosine_similarity as cosine_similarity
from ember_ml.ops.linearalg.norms import euclidean_distance as euclidean_distance
from ember_ml.ops.linearalg.norms import matrix_norm as matrix_norm
from ember_ml.ops.linearalg.norms import norm as norm
from ember_ml.ops.linearalg.norms import normalize as normalize
from ember_ml.ops.linearalg.norms import vector_norm as vector_norm
from ember_ml.ops.linearalg.products import cross as cross
from ember_ml.ops.linearalg.products import diagonal as diagonal
from ember_ml.ops.linearalg.products import dot as dot
from ember_ml.ops.linearalg.products import einsum as einsum
from ember_ml.ops.linearalg.products import inner as inner
from ember_ml.ops.linearalg.products import kron as kron
from ember_ml.ops.linearalg.products import linear as linear
from ember_ml.ops.linearalg.products import matmul as matmul
from ember_ml.ops.linearalg.products import outer as outer
from ember_ml.ops.linearalg.products import tensordot as tensordot
from ember_ml.ops.linearalg.products import trace as trace
from ember_ml.ops.linearalg.products import vdot as vdot
from ember_ml.ops.linearalg.products import vecdot as vecdot
from ember_ml.ops.neural.activations import celu as celu
from ember_ml.ops.neural.activations import elu as elu
from ember_ml.ops.neural.activations import gelu as gelu
from ember_ml.ops.neural.activations import glu as glu
from ember_ml.ops.neural.activations import hard_shrink as hard_shrink
from ember_ml.ops.neural.activations import hard_sigmoid as hard_sigmoid
from ember_ml.ops.neural.activations import hard_silu as hard_silu
from ember_ml.ops.neural.activations import hard_tanh as hard_tanh
from ember_ml.ops.neural.activations import leaky_relu as leaky_relu
from ember_ml.ops.neural.activations import log_sigmoid as log_sigmoid
from ember_ml.ops.neural.activations import log_softmax as log_softmax
from ember_ml.ops.neural.activations import mish as mish
from ember_ml.ops.neural.activations import prelu as prelu
from ember_ml.ops.neural.activations import relu as relu
from ember_ml.ops.neural.activations import relu6 as relu6
from ember_ml.ops.neural.activations import selu as selu
from ember_ml.ops.neural.activations import sigmoid as sigmoid
from ember_ml.ops.neural.activations import silu as silu
from ember_ml.ops.neural.activations import soft_shrink as soft_shrink
from ember_ml.ops.neural.activations import softmax as softmax
from ember_ml.ops.neural.activations import softplus as softplus
from ember_ml.ops.neural.activations import softsign as softsign
from ember_ml.ops.neural.activations import sparsemax as sparsemax
from ember_ml.ops.neural.activations import squareplus as squareplus
from ember_ml.ops.neural.activations import swish as swish
from ember_ml.ops.neural.activations import tanh_shrink as tanh_shrink
from ember_ml.ops.neural.activations import threshold as threshold
from ember_ml.ops.neural.attention import dot_product_attention as dot_product_attention
from ember_ml.ops.neural.attention import rotary_embedding as rotary_embedding
from ember_ml.ops.neural.convolutions import conv as conv
from ember_ml.ops.neural.convolutions import conv_transpose as conv_transpose
from ember_ml.ops.neural.convolutions import depthwise_conv as depthwise_conv
from ember_ml.ops.neural.convolutions import separable_conv as separable_conv
from ember_ml.ops.neural.losses import binary_crossentropy as binary_crossentropy
from ember_ml.ops.neural.losses import categorical_crossentropy as categorical_crossentropy
from ember_ml.ops.neural.losses import ctc_loss as ctc_loss
from ember_ml.ops.neural.losses import huber_loss as huber_loss
from ember_ml.ops.neural.losses import kl_divergence as kl_divergence
from ember_ml.ops.neural.losses import log_cosh_loss as log_cosh_loss
from ember_ml.ops.neural.losses import mean_absolute_error as mean_absolute_error
from ember_ml.ops.neural.losses import mean_squared_error as mean_squared_error
from ember_ml.ops.neural.losses import sparse_categorical_crossentropy as sparse_categorical_crossentropy
from ember_ml.ops.neural.normalizations import batch_normalization as batch_normalization
from ember_ml.ops.neural.normalizations import group_normalization as group_normalization
from ember_ml.ops.neural.normalizations import layer_normalization as layer_normalization
from ember_ml.ops.neural.normalizations import moments_normalization as moments_normalization
from ember_ml.ops.neural.normalizations import rms_normalization as rms_normalization
from ember_ml.ops.neural.pooling import adaptive_average_pool as adaptive_average_pool
from ember_ml.ops.neural.pooling import adaptive_max_pool as adaptive_max_pool
from ember_ml.ops.neural.pooling import average_pool as average_pool
from ember_ml.ops.neural.pooling import max_pool as max_pool
from ember_ml.ops.neural.quantization import dequantize as dequantize
from ember_ml.ops.neural.quantization import quantized_linear as quantized_linear
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
from ember_ml.ops.signal.filtering import convolve as convolve
from ember_ml.ops.signal.filtering import fftconvolve as fftconvolve
from ember_ml.ops.signal.filtering import resample as resample
from ember_ml.ops.signal.filtering import resample_poly as resample_poly
from ember_ml.ops.signal.fourier import fft as fft
from ember_ml.ops.signal.fourier import fft2 as fft2
from ember_ml.ops.signal.fourier import fftfreq as fftfreq
from ember_ml.ops.signal.fourier import fftn as fftn
from ember_ml.ops.signal.fourier import fftshift as fftshift
from ember_ml.ops.signal.fourier import hfft as hfft
from ember_ml.ops.signal.fourier import ifft as ifft
from ember_ml.ops.signal.fourier import ifft2 as ifft2
from ember_ml.ops.signal.fourier import ifftn as ifftn
from ember_ml.ops.signal.fourier import ifftshift as ifftshift
from ember_ml.ops.signal.fourier import ihfft as ihfft
from ember_ml.ops.signal.fourier import irfft as irfft
from ember_ml.ops.signal.fourier import irfft2 as irfft2
from ember_ml.ops.signal.fourier import irfftn as irfftn
from ember_ml.ops.signal.fourier import rfft as rfft
from ember_ml.ops.signal.fourier import rfft2 as rfft2
from ember_ml.ops.signal.fourier import rfftfreq as rfftfreq
from ember_ml.ops.signal.fourier import rfftn as rfftn
from ember_ml.ops.signal.short_time import frame as frame
from ember_ml.ops.signal.short_time import istft as istft
from ember_ml.ops.signal.short_time import mel_filterbank as mel_filterbank
from ember_ml.ops.signal.short_time import overlap_add as overlap_add
from ember_ml.ops.signal.short_time import spectrogram as spectrogram
from ember_ml.ops.signal.short_time import stft as stft
from ember_ml.ops.signal.windows import bartlett as bartlett
from ember_ml.ops.signal.windows import bartlett_window as bartlett_window
from ember_ml.ops.signal.windows import blackman as blackman
from ember_ml.ops.signal.windows import blackman_window as blackman_window
from ember_ml.ops.signal.windows import gaussian_window as gaussian_window
from ember_ml.ops.signal.windows import hamming as hamming
from ember_ml.ops.signal.windows import hamming_window as hamming_window
from ember_ml.ops.signal.windows import hann_window as hann_window
from ember_ml.ops.signal.windows import hanning as hanning
from ember_ml.ops.signal.windows import kaiser as kaiser
from ember_ml.ops.signal.windows import kaiser_window as kaiser_window
from ember_ml.ops.stats.cumulative import corrcoef as corrcoef
from ember_ml.ops.stats.cumulative import correlate as correlate
from ember_ml.ops.stats.cumulative import cov as cov
from ember_ml.ops.stats.cumulative import cumprod as cumprod
from ember_ml.ops.stats.cumulative import cumsum as cumsum
from ember_ml.ops.stats.cumulative import cumulative_prod as cumulative_prod
from ember_ml.ops.stats.cumulative import cumulative_sum as cumulative_sum
from ember_ml.ops.stats.cumulative import diff as diff
from ember_ml.ops.stats.cumulative import trapezoid as trapezoid
from ember_ml.ops.stats.nan_statistics import nanargmax as nanargmax
from ember_ml.ops.stats.nan_statistics import nanargmin as nanargmin
from ember_ml.ops.stats.nan_statistics import nancumprod as nancumprod
from ember_ml.ops.stats.nan_statistics import nancumsum as nancumsum
from ember_ml.ops.stats.nan_statistics import nanmax as nanmax
from ember_ml.ops.stats.nan_statistics import nanmean as nanmean
from ember_ml.ops.stats.nan_statistics import nanmin as nanmin
from ember_ml.ops.stats.nan_statistics import nanprod as nanprod
from ember_ml.ops.stats.nan_statistics import nanstd as nanstd
from ember_ml.ops.stats.nan_statistics import nansum as nansum
from ember_ml.ops.stats.nan_statistics import nanvar as nanvar
from ember_ml.ops.stats.reductions import all as all
from ember_ml.ops.stats.reductions import amax as amax
from ember_ml.ops.stats.reductions import amin as amin
from ember_ml.ops.stats.reductions import any as any
from ember_ml.ops.stats.reductions import argmax as argmax
from ember_ml.ops.stats.reductions import argmin as argmin
from ember_ml.ops.stats.reductions import average as average
from ember_ml.ops.stats.reductions import count_nonzero as count_nonzero
from ember_ml.ops.stats.reductions import gaussian as gaussian
from ember_ml.ops.stats.reductions import logsumexp as logsumexp
from ember_ml.ops.stats.reductions import max as max
from ember_ml.ops.stats.reductions import mean as mean
from ember_ml.ops.stats.reductions import min as min
from ember_ml.ops.stats.reductions import moments as moments
from ember_ml.ops.stats.reductions import prod as prod
from ember_ml.ops.stats.reductions import ptp as ptp
from ember_ml.ops.stats.reductions import reduce_max as reduce_max
from ember_ml.ops.stats.reductions import reduce_mean as reduce_mean
from ember_ml.ops.stats.reductions import reduce_min as reduce_min
from ember_ml.ops.stats.reductions import reduce_prod as reduce_prod
from ember_ml.ops.stats.reductions import reduce_std as reduce_std
from ember_ml.ops.stats.reductions import reduce_sum as reduce_sum
from ember_ml.ops.stats.reductions import reduce_var as reduce_var
from ember_ml.ops.stats.reductions import std as std
from ember_ml.ops.stats.reductions import sum as sum
from ember_ml.ops.stats.reductions import var as var
from ember_ml.transforms.compilation import compile as compile
from ember_ml.transforms.control import cond as cond
from ember_ml.transforms.control import fori_loop as fori_loop
from ember_ml.transforms.control import switch as switch
from ember_ml.transforms.control import while_loop as while_loop
from ember_ml.transforms.gradients import checkpoint as checkpoint
from ember_ml.transforms.gradients import custom_gradient as custom_gradient
from ember_ml.transforms.gradients import grad as grad
from ember_ml.transforms.gradients import hessian as hessian
from ember_ml.transforms.gradients import jacobian as jacobian
from ember_ml.transforms.gradients import jvp as jvp
from ember_ml.transforms.gradients import value_and_grad as value_and_grad
from ember_ml.transforms.gradients import vectorize as vectorize
from ember_ml.transforms.gradients import vjp as vjp
from ember_ml.transforms.gradients import vmap as vmap
from ember_ml.transforms.odes import odeint as odeint
from ember_ml.transforms.scans import associative_scan as associative_scan
from ember_ml.transforms.scans import map as map
from ember_ml.transforms.scans import scan as scan
from ember_ml.transforms.scans import vectorized_map as vectorized_map
from ember_ml.transforms.solvers import conjugate_gradient as conjugate_gradient
from ember_ml.transforms.solvers import gmres as gmres
from ember_ml.transforms.solvers import newton_root as newton_root

__all__ = [
    "FInfo",
    "Generator",
    "IInfo",
    "abs",
    "absolute",
    "acos",
    "acosh",
    "adaptive_average_pool",
    "adaptive_max_pool",
    "add",
    "affine_transform",
    "all",
    "allclose",
    "amax",
    "amin",
    "angle",
    "any",
    "append",
    "arange",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argpartition",
    "argsort",
    "argwhere",
    "array",
    "array_split",
    "asarray",
    "asin",
    "asinh",
    "associative_scan",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "average",
    "average_pool",
    "bartlett",
    "bartlett_window",
    "batch_normalization",
    "bfloat16",
    "binary_crossentropy",
    "bincount",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "blackman",
    "blackman_window",
    "bool",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "can_cast",
    "cast",
    "categorical_crossentropy",
    "cbrt",
    "cdist",
    "ceil",
    "celu",
    "center_crop",
    "checkpoint",
    "cholesky",
    "cholesky_inverse",
    "clip",
    "column_stack",
    "compile",
    "complex64",
    "complex128",
    "concat",
    "concatenate",
    "cond",
    "conj",
    "conjugate",
    "conjugate_gradient",
    "conv",
    "conv_transpose",
    "convert_to_tensor",
    "convolve",
    "copy",
    "copysign",
    "corrcoef",
    "correlate",
    "cos",
    "cosh",
    "cosine_similarity",
    "count_nonzero",
    "cov",
    "crop_images",
    "cross",
    "ctc_loss",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "custom_gradient",
    "deg2rad",
    "depthwise_conv",
    "dequantize",
    "det",
    "diag",
    "diagflat",
    "diagonal",
    "diff",
    "digamma",
    "digitize",
    "divide",
    "divide_no_nan",
    "dot",
    "dot_product_attention",
    "dropout",
    "dsplit",
    "dstack",
    "dtype",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "einsum",
    "elu",
    "empty",
    "empty_like",
    "equal",
    "erf",
    "erfc",
    "erfinv",
    "euclidean_distance",
    "exp",
    "exp2",
    "expand_dims",
    "expm",
    "expm1",
    "extract_patches",
    "eye",
    "fabs",
    "fft",
    "fft2",
    "fftconvolve",
    "fftfreq",
    "fftn",
    "fftshift",
    "finfo",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "float16",
    "float32",
    "float64",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "fori_loop",
    "frame",
    "from_dlpack",
    "full",
    "full_like",
    "gather",
    "gaussian",
    "gaussian_blur",
    "gaussian_window",
    "gcd",
    "gelu",
    "geomspace",
    "get_available_devices",
    "get_backend",
    "get_default_device",
    "get_device",
    "get_item",
    "glu",
    "gmres",
    "grad",
    "greater",
    "greater_equal",
    "group_normalization",
    "hamming",
    "hamming_window",
    "hann_window",
    "hanning",
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_tanh",
    "heaviside",
    "hessian",
    "hfft",
    "histogram",
    "hsplit",
    "hstack",
    "hsv_to_rgb",
    "huber_loss",
    "hypot",
    "i0",
    "identity",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "iinfo",
    "imag",
    "image",
    "in_top_k",
    "index_update",
    "inner",
    "int8",
    "int16",
    "int32",
    "int64",
    "inv",
    "irfft",
    "irfft2",
    "irfftn",
    "is_available",
    "is_tensor",
    "isclose",
    "isdtype",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "istft",
    "item",
    "jacobian",
    "jvp",
    "kaiser",
    "kaiser_window",
    "kl_divergence",
    "kron",
    "layer_normalization",
    "lcm",
    "ldexp",
    "leaky_relu",
    "less",
    "less_equal",
    "lgamma",
    "linear",
    "linearalg",
    "linspace",
    "load",
    "log",
    "log1p",
    "log2",
    "log10",
    "log_cosh_loss",
    "log_sigmoid",
    "log_softmax",
    "logaddexp",
    "logaddexp2",
    "logdet",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logspace",
    "logsumexp",
    "lstsq",
    "lu_factor",
    "lu_solve",
    "map",
    "map_coordinates",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "max",
    "max_pool",
    "maximum",
    "mean",
    "mean_absolute_error",
    "mean_squared_error",
    "median",
    "mel_filterbank",
    "memory_info",
    "meshgrid",
    "min",
    "minimum",
    "mish",
    "mod",
    "moments",
    "moments_normalization",
    "moveaxis",
    "multi_hot",
    "multiply",
    "nan_to_num",
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanpercentile",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
    "ndim",
    "negative",
    "newton_root",
    "nextafter",
    "nonzero",
    "norm",
    "normalize",
    "not_equal",
    "odeint",
    "one_hot",
    "ones",
    "ones_like",
    "outer",
    "overlap_add",
    "pad",
    "pad_images",
    "percentile",
    "permute_dims",
    "perspective_transform",
    "pinv",
    "polar",
    "positive",
    "pow",
    "power",
    "prelu",
    "prod",
    "psnr",
    "ptp",
    "put_along_axis",
    "qr",
    "quantile",
    "quantized_linear",
    "rad2deg",
    "randint",
    "random",
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
    "real",
    "reciprocal",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_std",
    "reduce_sum",
    "reduce_var",
    "relu",
    "relu6",
    "remainder",
    "repeat",
    "resample",
    "resample_poly",
    "reshape",
    "resize",
    "result_type",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
    "rgb_to_grayscale",
    "rgb_to_hsv",
    "rgb_to_yuv",
    "rms_normalization",
    "roll",
    "rot90",
    "rotary_embedding",
    "rotate",
    "round",
    "rsqrt",
    "saturate_cast",
    "save",
    "scale_and_translate",
    "scan",
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
    "select",
    "selu",
    "separable_conv",
    "set_backend",
    "set_default_device",
    "shape",
    "shuffle",
    "sigmoid",
    "sign",
    "signal",
    "signbit",
    "silu",
    "sin",
    "sinc",
    "sinh",
    "size",
    "slice",
    "slice_update",
    "slogdet",
    "soft_shrink",
    "softmax",
    "softplus",
    "softsign",
    "solve",
    "solve_triangular",
    "sort",
    "sparse_categorical_crossentropy",
    "sparsemax",
    "spectrogram",
    "split",
    "sqrt",
    "square",
    "squareplus",
    "squeeze",
    "ssim",
    "stack",
    "stats",
    "std",
    "stft",
    "stop_gradient",
    "subtract",
    "sum",
    "svd",
    "svdvals",
    "swapaxes",
    "swish",
    "switch",
    "synchronize",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tanh_shrink",
    "tensordot",
    "threshold",
    "tile",
    "to_device",
    "to_numpy",
    "top_k",
    "trace",
    "transpose",
    "trapezoid",
    "tri",
    "tril",
    "tril_indices",
    "triu",
    "triu_indices",
    "true_divide",
    "trunc",
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
    "value_and_grad",
    "vander",
    "var",
    "vdot",
    "vecdot",
    "vector_norm",
    "vectorize",
    "vectorized_map",
    "view",
    "vjp",
    "vmap",
    "vsplit",
    "vstack",
    "where",
    "while_loop",
    "xlogy",
    "yuv_to_rgb",
    "zeros",
    "zeros_like",
]
