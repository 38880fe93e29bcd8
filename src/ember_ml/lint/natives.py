"""Tables of the tensor libraries themselves: NumPy, PyTorch, MLX, JAX and similar ones.

Plain data: which modules are tensor libraries, which of their names are types, dtypes, random or device functions,
which methods belong to native tensors only, and which op replaces which native function.
"""

from __future__ import annotations

from ember_ml.lint.tables import pairs, words

LIBRARIES = frozenset(
    {"numpy", "torch", "mlx", "jax", "jaxlib", "tensorflow", "cupy", "paddle", "mxnet", "dask", "sparse"}
)

# The name a reader expects where nothing in the file binds it (code fragments, templates, notebooks).
CONVENTIONAL_NAMES = pairs(
    """
    np=numpy numpy=numpy torch=torch mlx=mlx mx=mlx.core jnp=jax.numpy jax=jax tf=tensorflow cp=cupy
    """
)

TENSOR_TYPES = words(
    """
    numpy.ndarray numpy.generic numpy.matrix numpy.typing.NDArray numpy.ma.MaskedArray torch.Tensor torch.FloatTensor
    torch.LongTensor torch.DoubleTensor torch.HalfTensor torch.IntTensor torch.BoolTensor torch.nn.Parameter
    torch.nn.parameter.Parameter torch.autograd.Variable mlx.core.array jax.Array jax.numpy.ndarray tensorflow.Tensor
    tensorflow.Variable cupy.ndarray
    """
)

DTYPE_NAMES = words(
    """
    float16 bfloat16 float32 float64 float128 half float double single int8 int16 int32 int64 long short int uint8
    uint16 uint32 uint64 uint bool bool_ complex64 complex128 cfloat cdouble complex longdouble longlong intc intp
    uintp float_ int_ complex_ qint8 quint8 ubyte ushort uintc ulonglong byte float8_e4m3fn float8_e5m2
    """
)
DTYPE_TO_OPS = pairs(
    """
    half=float16 float=float32 double=float64 single=float32 long=int64 short=int16 int=int32 bool_=bool
    cfloat=complex64 cdouble=complex128
    """
)
# numpy.float and numpy.int meant Python's own types before they were removed: no repair for those.
NUMPY_DTYPE_TO_OPS = {"half": "float16", "double": "float64", "single": "float32", "bool_": "bool", "intp": "int64"}

RANDOM_NAMES = words(
    """
    rand randn randint randperm bernoulli multinomial normal poisson rand_like randn_like randint_like manual_seed
    seed initial_seed get_rng_state set_rng_state
    """
)
DEVICE_NAMES = words(
    """
    torch.device torch.cuda torch.mps torch.xpu torch.set_default_device torch.get_default_device torch.backends
    mlx.core.Device mlx.core.cpu mlx.core.gpu mlx.core.set_default_device mlx.core.default_device mlx.core.metal
    mlx.core.set_default_stream mlx.core.stream mlx.core.new_stream mlx.core.default_stream mlx.core.synchronize
    mlx.core.eval mlx.core.cuda jax.devices jax.local_devices jax.device_put jax.device_get jax.default_device
    jax.device_count jax.block_until_ready tensorflow.device tensorflow.config
    """
)

# Native functions that return no tensor.
NOT_TENSOR_FUNCTIONS = words(
    """
    dtype finfo iinfo can_cast result_type promote_types issubdtype isscalar iterable shape ndim size save savez
    savez_compressed savetxt set_printoptions get_printoptions errstate seterr array2string array_repr array_str
    is_tensor is_floating_point is_complex manual_seed seed no_grad enable_grad set_grad_enabled inference_mode
    compile device set_default_device get_default_device set_default_dtype get_default_dtype is_available device_count
    allclose array_equal array_equiv shares_memory may_share_memory broadcast_shapes numel default_rng Generator
    RandomState set_num_threads get_num_threads eval synchronize clear_cache get_backend test show_config show_runtime
    save_safetensors save_gguf issctype isdtype key PRNGKey jit grad vmap value_and_grad pmap ndindex ndenumerate
    nditer printoptions vectorize get_include
    """
)
NOT_TENSOR_MODULES = (
    "torch.nn",
    "torch.optim",
    "torch.utils",
    "torch.cuda",
    "torch.backends",
    "torch.distributed",
    "torch.jit",
    "torch.mps",
    "torch.hub",
    "torch.autograd",
    "torch.onnx",
    "torch.compiler",
    "torch.version",
    "numpy.testing",
    "numpy.typing",
    "numpy.lib",
    "numpy.dtypes",
    "numpy.exceptions",
    "mlx.nn",
    "mlx.optimizers",
    "mlx.utils",
    "mlx.core.metal",
    "jax.tree_util",
    "jax.tree",
    "jax.config",
    "jax.sharding",
    "jax.experimental",
    "jax.util",
    "tensorflow.keras",
    "tensorflow.config",
    "tensorflow.compat",
    "tensorflow.python",
    "numpy.f2py",
    "numpy.ctypeslib",
    "numpy.distutils",
    "numpy.version",
    "numpy.random.mtrand",
)
SEQUENCE_FUNCTIONS = words(
    """
    split array_split vsplit hsplit dsplit meshgrid nonzero unravel_index svd qr eig eigh slogdet lstsq
    broadcast_arrays unbind chunk tensor_split triu_indices tril_indices unstack histogram ix_ topk linalg_svd frexp
    modf divmod gradient histogram2d histogramdd unique_all unique_counts unique_inverse
    """
)

NUMPY_CREATION = words(
    """
    array asarray ascontiguousarray asanyarray zeros ones empty full eye identity arange linspace logspace geomspace
    zeros_like ones_like empty_like full_like stack concatenate vstack hstack dstack column_stack block tile meshgrid
    fromiter frombuffer fromfunction loadtxt genfromtxt load diag tri tril triu vander mgrid indices reshape
    atleast_1d atleast_2d matmul dot cumsum cumprod sort argsort unique where nonzero transpose expand_dims squeeze
    broadcast_to pad roll flip repeat
    """
)

UNMISTAKABLE_METHODS = words(
    """
    numpy unsqueeze unsqueeze_ squeeze_ permute contiguous requires_grad_ scatter_add_ scatter_ index_add_
    masked_fill masked_fill_ mul_ sub_ div_ zero_ clamp_ __array__ view_as expand_as reshape_as bmm clamp_min
    clamp_max scatter_add index_select
    """
)
DEVICE_METHODS = frozenset({"cuda", "cpu", "to", "xpu", "mps", "block_until_ready", "to_device", "pin_memory"})
CAST_METHODS = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "bool": "bool",
    "astype": "",
    "type": "",
    "type_as": "",
}
# Methods of a tensor that return something else; every other method returns a tensor.
METHODS_OTHER = words(
    """
    item tolist size dim numel stride element_size is_floating_point is_complex tobytes dump dumps is_contiguous
    get_device data_ptr nelement backward register_hook __len__ hash device_buffer is_deleted
    """
)
METHODS_SEQUENCE = words("split chunk unbind nonzero tensor_split svd qr topk aminmax slogdet")
ATTRIBUTES_OTHER = words(
    """
    shape dtype device ndim size itemsize nbytes strides requires_grad is_leaf layout is_cuda name names grad_fn flags
    base ctypes sharding weak_type backend native initializer trainable path constraint regularizer aggregation
    """
)
ATTRIBUTES_TENSOR = frozenset({"T", "mT", "H", "mH", "data", "grad", "flat", "real", "imag", "at", "value", "values"})
# Attributes that differ between libraries; ``shape``, ``dtype``, ``ndim``, ``device`` and ``size`` are common to all.
NATIVE_ATTRIBUTES = frozenset(
    {"T", "mT", "H", "mH", "data", "grad", "flat", "at", "real", "imag", "requires_grad", "is_cuda"}
)

TENSOR_PROBES = words(
    """
    numpy detach cpu cuda requires_grad grad_fn grad __array__ __array_interface__ __dlpack__ to tolist item
    __cuda_array_interface__ is_cuda device_buffer at unsqueeze astype
    """
)
BACKEND_FUNCTIONS = frozenset({"get_backend", "current_backend", "backend", "get_backend_name", "active_backend"})
BACKEND_WORDS = frozenset({"numpy", "torch", "pytorch", "mlx", "jax", "tensorflow", "cupy"})


def library_of(name: str) -> str | None:
    """Return the tensor library that a dotted name belongs to, or ``None``.

    >>> library_of("torch.nn.functional.relu"), library_of("pandas.DataFrame")
    ('torch', None)
    """
    root = name.split(".", 1)[0]
    return root if root in LIBRARIES else None


def constant_repair(name: str) -> str | None:
    """Return plain Python for a constant of a tensor library."""
    last = name.rsplit(".", 1)[1]
    return {
        "pi": "math.pi",
        "e": "math.e",
        "inf": "math.inf",
        "nan": "math.nan",
        "newaxis": "None",
        "euler_gamma": None,
    }.get(last)
