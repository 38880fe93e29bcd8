"""Profiles: how one multi-backend library spells its ops, its tensors and its front end.

A profile is configuration, not code: ``[tool.emberlint.profiles.<name>]`` in pyproject.toml takes the same keys as the
fields below and may start from a shipped one with ``extends``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

from ember_ml.lint import opnames
from ember_ml.lint.tables import words


@dataclass(frozen=True)
class Profile:
    """The names of one library that the linter needs."""

    name: str
    namespaces: tuple[str, ...] = ()  # dotted names whose functions are ops
    returns_tensor: frozenset[str] = frozenset()
    returns_tensors: frozenset[str] = frozenset()
    returns_other: frozenset[str] = frozenset()
    tensor_types: frozenset[str] = frozenset()  # dotted names; annotations and isinstance
    tensor_like_types: frozenset[str] = frozenset()  # a tensor or Python data
    namespace_functions: frozenset[str] = frozenset()  # functions that return a namespace (array_namespace)
    namespace_parameters: frozenset[str] = frozenset()  # parameters that hold one (xp)
    tensor_parameters: frozenset[str] = frozenset()  # unannotated parameters of these names are tensors
    number_parameters: frozenset[str] = frozenset()  # and these are not
    forward_methods: frozenset[str] = frozenset()  # methods of layers: their first parameter is a tensor
    tensor_methods: frozenset[str] = frozenset()  # methods on self that return a tensor (add_weight)
    backend_modules: tuple[str, ...] = ()  # packages with one folder per backend
    import_line: str = ""  # what a repair adds
    prefix: str = ""  # how a repair spells an op
    ignore: tuple[str, ...] = ()
    _cache: dict[str, str | None] = field(default_factory=dict, compare=False, repr=False)

    def op(self, dotted: str) -> str | None:
        """Return the op's name if ``dotted`` is one."""
        try:
            return self._cache[dotted]
        except KeyError:
            head, _, last = dotted.rpartition(".")
            found = last if head in self.namespaces and last in self._names() else None
            self._cache[dotted] = found
            return found

    def is_namespace(self, dotted: str) -> bool:
        """Return whether ``dotted`` is one of the op namespaces."""
        return dotted in self.namespaces

    def _names(self) -> frozenset[str]:
        names = self.__dict__.get("_all")
        if names is None:
            names = self.returns_tensor | self.returns_tensors | self.returns_other | opnames.RETURNS_UNKNOWN
            object.__setattr__(self, "_all", names)
        return names


_EMBER_NAMESPACES = (
    "ember_ml.ops",
    "ember_ml.ops.stats",
    "ember_ml.ops.linearalg",
    "ember_ml.ops.random",
    "ember_ml.ops.signal",
    "ember_ml.ops.image",
    "ember_ml.nn.tensor",
    "ember_ml.tensor",
    "ember_ml.nn.features",
    "ember_ml.nn.modules.activations",
    "ember_ml.ops.elementwise.arithmetic",
    "emberharmony.ops",
    "emberharmony.nn.tensor",
    "emberharmony.ops.stats",
    "emberharmony.ops.linearalg",
)

EMBER = Profile(
    name="ember",
    namespaces=_EMBER_NAMESPACES,
    returns_tensor=opnames.RETURNS_TENSOR,
    returns_tensors=opnames.RETURNS_TENSORS,
    returns_other=opnames.RETURNS_OTHER,
    tensor_types=frozenset(
        f"{module}.{name}"
        for module in (
            "ember_ml",
            "ember_ml.tensor",
            "ember_ml.nn.tensor",
            "ember_ml.nn",
            "ember_ml.typing",
            "ember_ml.nn.modules",
            "ember_ml.nn.modules.module",
            "ember_ml.nn.modules.parameter",
        )
        for name in ("Tensor", "EmberTensor", "Parameter", "NativeTensor")
    ),
    tensor_like_types=frozenset(
        f"{module}.{name}"
        for module in ("ember_ml.typing", "ember_ml.nn.tensor", "ember_ml.tensor")
        for name in ("TensorLike", "TensorTypes")
    ),
    tensor_parameters=frozenset({"tensor", "y_true", "y_pred", "logits"}),
    forward_methods=frozenset({"forward", "call"}),
    backend_modules=("ember_ml.backend", "emberharmony.backend"),
    import_line="from ember_ml import ops",
    prefix="ops",
)

_KERAS_EXTRA_TENSOR = words(
    """
    add_n amax amin arange batch_normalization bincount binary_crossentropy categorical_crossentropy convert_to_tensor
    cast depthwise_conv digitize einsum erf extract_sequences fft2 image_resize in_top_k index_to_1d istft left_shift
    logical_xor max_pool average_pool normalize one_hot multi_hot outer rearrange rms_normalization scatter select
    separable_conv segment_max segment_sum slice_update sparse_categorical_crossentropy stft unfold vectorize
    view_as_complex view_as_real get_item hard_swish log_sigmoid polar psnr ctc_loss moveaxis swapaxes nan_to_num
    bartlett hamming hanning blackman kaiser logaddexp norm lstsq inv cholesky det lu_factor eigvals matrix_power
    floor_divide true_divide stop_gradient scatter_update slice expand_dims sparse_plus sparse_sigmoid bitwise_not
    saturate_cast rsqrt glu celu normal randint truncated_normal uniform dropout gamma binomial beta categorical
    shuffle rgb_to_grayscale rgb_to_hsv hsv_to_rgb resize affine_transform extract_patches map_coordinates pad_images
    crop_images gaussian_blur perspective_transform elastic_transform identity correlate trapezoid vdot
    """
)
KERAS = Profile(
    name="keras",
    namespaces=(
        "keras.ops",
        "keras.src.ops",
        "keras.src.ops.numpy",
        "keras.src.ops.nn",
        "keras.src.ops.math",
        "keras.src.ops.linalg",
        "keras.src.ops.core",
        "keras.src.ops.image",
        "keras.src.backend.numpy",
        "keras.src.backend.nn",
        "keras.src.backend.math",
        "keras.src.backend.core",
        "keras.src.backend.linalg",
        "keras.src.backend.image",
        "keras.src.backend.random",
        "keras.src.backend",
        "keras.backend",
        "keras.random",
        "keras.src.random",
        "keras.ops.numpy",
        "keras.ops.nn",
        "keras.ops.linalg",
        "keras.ops.image",
    ),
    returns_tensor=opnames.RETURNS_TENSOR | _KERAS_EXTRA_TENSOR,
    returns_tensors=(opnames.RETURNS_TENSORS | {"unstack", "moments", "divmod"}) - {"top_k_"},
    returns_other=(
        opnames.RETURNS_OTHER
        | words(
            """
    floatx epsilon standardize_dtype is_float_dtype is_int_dtype image_data_format result_type compute_output_spec
    is_tensor backend convert_to_numpy device_scope int8 name_scope StatelessScope SymbolicScope in_stateless_scope
    KerasTensor SeedGenerator
    """
        )
    )
    - frozenset({"dtype", "size"}),
    tensor_types=frozenset(
        {
            "keras.src.backend.common.variables.Variable",
            "keras.src.backend.torch.core.Variable",
            "keras.src.backend.torch.Variable",
            "keras.KerasTensor",
            "keras.src.backend.KerasTensor",
            "keras.Variable",
            "keras.src.backend.Variable",
            "keras.src.backend.common.keras_tensor.KerasTensor",
        }
    ),
    tensor_parameters=frozenset(
        {"tensor", "y_true", "y_pred", "logits", "gradient", "gradients_", "inputs", "states_"}
    ),
    number_parameters=frozenset({"input_shape", "axis", "name", "dtype", "training"}),
    forward_methods=frozenset({"call"}),
    tensor_methods=frozenset({"add_weight", "add_variable", "add_variable_from_reference"}),
    backend_modules=("keras.src.backend", "keras.backend"),
    import_line="from keras import ops",
    prefix="ops",
)

_ARRAY_API = words(
    """
    abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan atan2 atanh bitwise_and
    bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor broadcast_to ceil clip concat conj
    copysign cos cosh count_nonzero cumulative_prod cumulative_sum diff divide empty empty_like equal exp expand_dims
    expm1 eye flip floor floor_divide from_dlpack full full_like greater greater_equal hypot imag isfinite isin isinf
    isnan less less_equal linspace log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor
    matmul matrix_transpose max maximum mean min minimum moveaxis multiply negative nextafter not_equal ones ones_like
    permute_dims positive pow prod real reciprocal remainder repeat reshape roll round searchsorted sign signbit sin
    sinh sort sqrt square squeeze stack std subtract sum take take_along_axis tan tanh tensordot tile tril triu trunc
    unique_values var vecdot where zeros zeros_like cholesky cross det diagonal eigvalsh inv matrix_norm matrix_power
    matrix_rank outer pinv solve svdvals trace vector_norm eigvals fft ifft fftn ifftn rfft irfft rfftn irfftn hfft
    ihfft fftfreq rfftfreq fftshift ifftshift
    """
)
ARRAY_API = Profile(
    name="array-api",
    namespaces=("@xp", "@xp.linalg", "@xp.fft", "array_api_compat", "array_api_strict"),
    returns_tensor=_ARRAY_API,
    returns_tensors=words(
        """
    meshgrid broadcast_arrays nonzero unstack unique_all unique_counts unique_inverse eigh eig qr slogdet svd
    """
    ),
    returns_other=words("can_cast finfo iinfo isdtype result_type broadcast_shapes") | opnames.DTYPES,
    tensor_types=frozenset({"array_api_typing.Array", "array_api_extra._lib._utils._typing.Array"}),
    namespace_functions=frozenset(
        {"array_namespace", "get_namespace", "get_xp", "__array_namespace__", "get_array_namespace"}
    ),
    namespace_parameters=frozenset({"xp"}),
    backend_modules=(),
    import_line="",
    prefix="xp",
    # The standard defines the operators and a few methods; code written to it uses them on purpose.
    ignore=("EMB401", "EMB403", "EMB404", "EMB405", "EMB406", "EMB301", "EMB303"),
)

_TENSORLY = words(
    """
    tensor abs all any arange arccos arccosh arcsin arcsinh arctan arctanh argmax argmin argsort asinh atan clip
    concatenate conj copy cos cosh count_nonzero cumsum diag diagonal digamma dot einsum exp expm1 eye flip kr kron
    lgamma log log2 log10 logsumexp matmul max maximum mean min moveaxis norm ones prod reshape sign sin sinh solve
    sort sqrt sum tan tanh tensordot trace transpose where zeros zeros_like stack sigmoid index_update tile convolve
    svdvals
    """
)
TENSORLY = Profile(
    name="tensorly",
    namespaces=("tensorly", "tensorly.backend", "tensorly.backend.core", "@tl"),
    returns_tensor=_TENSORLY,
    returns_tensors=words("svd qr eigh lstsq partial_svd truncated_svd meshgrid"),
    returns_other=words(
        """
    shape ndim context to_numpy get_backend set_backend is_tensor eps finfo check_random_state
    """
    )
    | opnames.DTYPES,
    tensor_types=frozenset(),
    tensor_parameters=frozenset({"tensor"}),
    backend_modules=("tensorly.backend",),
    import_line="import tensorly as tl",
    prefix="tl",
    ignore=("EMB401", "EMB403", "EMB404", "EMB405", "EMB406"),
)

SHIPPED = {profile.name: profile for profile in (EMBER, KERAS, ARRAY_API, TENSORLY)}


def build(name: str, table: dict[str, object]) -> Profile:
    """Return a profile from a table of pyproject.toml.

    Raises:
        ValueError: for an unknown key, a wrong type or an unknown profile in ``extends``.
    """
    table = dict(table)
    parent = table.pop("extends", None)
    if parent is not None and parent not in SHIPPED:
        raise ValueError(f"profile {name!r} extends {parent!r}, which does not exist; there are {', '.join(SHIPPED)}")
    base = SHIPPED[parent] if isinstance(parent, str) else Profile(name)
    known = {f.name: f for f in fields(Profile) if not f.name.startswith("_") and f.name != "name"}
    changes: dict[str, object] = {}
    for key, value in table.items():
        attribute = key.replace("-", "_")
        if attribute not in known:
            names = ", ".join(sorted(k.replace("_", "-") for k in known))
            raise ValueError(f"unknown key {key!r} in profile {name!r}; known: {names}")
        present = getattr(base, attribute)
        if isinstance(present, (tuple, frozenset)):
            if not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
                raise ValueError(f"{key!r} in profile {name!r} must be a list of strings")
            changes[attribute] = type(present)(value)
        elif isinstance(value, type(present)):
            changes[attribute] = value
        else:
            raise ValueError(f"{key!r} in profile {name!r} must be a {type(present).__name__}")
    return replace(base, name=name, _cache={}, **changes)
