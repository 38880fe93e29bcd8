"""The names of Ember ML's ops and the kind of each result.

One table, as plain data: the linter imports nothing of the library that it checks.
"""

from __future__ import annotations

from ember_ml.lint.tables import words

_TENSOR = """
abs absolute add ceil clip conj copysign divide divide_no_nan exp exp2 expm1 floor floor_divide fmax fmin fmod gcd
heaviside hypot
imag lcm ldexp log log10 log1p log2 logaddexp logaddexp2 maximum minimum mod remainder multiply nan_to_num negative
nextafter positive power pow real reciprocal round rsqrt sign signbit sinc sqrt cbrt square subtract true_divide trunc
sin cos tan arcsin arccos arctan arctan2 asin acos atan atan2 sinh cosh tanh arcsinh arccosh arctanh asinh acosh atanh
deg2rad rad2deg angle polar
erf erfc erfinv lgamma digamma i0 xlogy
bitwise_and bitwise_or bitwise_xor bitwise_invert bitwise_not bitwise_left_shift bitwise_right_shift
equal not_equal less less_equal greater greater_equal isclose allclose isfinite isinf isnan isneginf isposinf isreal
isin logical_and logical_or logical_not logical_xor where select all any count_nonzero
array asarray convert_to_tensor zeros ones full empty zeros_like ones_like full_like empty_like eye identity
arange linspace logspace geomspace tri tril triu diag diagflat vander copy cast astype saturate_cast view from_dlpack
reshape transpose permute_dims swapaxes moveaxis expand_dims squeeze ravel flatten broadcast_to
concatenate concat stack vstack hstack dstack column_stack tile
repeat pad roll rot90 flip fliplr flipud matrix_transpose
take take_along_axis put_along_axis gather slice slice_update index_update get_item argwhere
ravel_multi_index searchsorted digitize bincount unique unique_values
scatter scatter_add scatter_max scatter_min scatter_mean scatter_update segment_sum segment_max segment_min
segment_mean
segment_prod one_hot multi_hot in_top_k
sum mean var std prod max min median percentile quantile average ptp argmax argmin sort argsort argpartition cumsum
reduce_mean reduce_std reduce_sum reduce_max reduce_min reduce_prod reduce_var
cumprod cumulative_sum cumulative_prod diff trapezoid corrcoef cov correlate logsumexp gaussian
nansum nanmean nanvar nanstd nanmax nanmin nanmedian nanpercentile nanquantile nanprod nanargmax nanargmin nancumsum
nancumprod
matmul linear dot vdot vecdot inner outer tensordot einsum kron cross trace diagonal solve solve_triangular inv pinv
svdvals eigvals eigvalsh det logdet norm vector_norm matrix_norm matrix_rank matrix_power cholesky
cholesky_inverse lu_solve expm cdist cosine_similarity euclidean_distance
random_normal random_uniform random_bernoulli random_integers random_truncated_normal random_categorical
random_permutation shuffle random_choice random_gamma random_beta random_binomial random_poisson random_exponential
random_laplace random_gumbel dropout normal uniform bernoulli integers truncated_normal categorical permutation choice
gamma beta binomial poisson exponential laplace gumbel
fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift ifftshift
frame overlap_add stft istft hann_window hamming_window blackman_window bartlett_window kaiser_window gaussian_window
convolve fftconvolve resample spectrogram mel_filterbank
relu relu6 leaky_relu prelu elu selu celu gelu silu swish mish sigmoid log_sigmoid hard_sigmoid hard_silu hard_tanh
tanh_shrink softplus softsign softmax log_softmax sparsemax glu squareplus threshold hard_shrink soft_shrink
conv conv_transpose depthwise_conv separable_conv max_pool average_pool adaptive_max_pool adaptive_average_pool
layer_normalization rms_normalization batch_normalization group_normalization dot_product_attention rotary_embedding
binary_crossentropy categorical_crossentropy sparse_categorical_crossentropy ctc_loss mean_squared_error
mean_absolute_error huber_loss log_cosh_loss kl_divergence
stop_gradient to_device
"""

_TENSORS = """
meshgrid tril_indices triu_indices broadcast_arrays unstack split array_split vsplit hsplit dsplit nonzero
unravel_index
histogram unique_all unique_counts unique_inverse top_k moments svd eig eigh slogdet qr lu_factor lstsq
moments_normalization
conjugate_gradient gmres newton_root
"""

_OTHER = """
to_numpy is_tensor shape ndim size dtype item finfo iinfo isdtype can_cast result_type broadcast_shapes seed Generator
float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex64 complex128
get_device get_available_devices set_default_device get_default_device is_available synchronize memory_info save
grad value_and_grad vjp jvp jacobian hessian vmap compile checkpoint custom_gradient set_backend get_backend use_backend
use_device
"""

_UNKNOWN = """
odeint cond switch while_loop fori_loop scan associative_scan map vectorized_map load
"""

RETURNS_TENSOR = frozenset(_TENSOR.split())
RETURNS_TENSORS = frozenset(_TENSORS.split())
RETURNS_OTHER = frozenset(_OTHER.split())
RETURNS_UNKNOWN = frozenset(_UNKNOWN.split())

DTYPES = words(
    """
    float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex64 complex128
    """
)

CONTRACTIONS = words("matmul linear dot vdot vecdot inner outer tensordot einsum conv dot_product_attention")

CREATION = words("zeros ones full empty eye identity arange linspace logspace geomspace")

# Ops whose leading arguments can hardly be anything but tensors: a parameter that is passed there is one.
_STRONG_FIRST = """
reshape transpose permute_dims swapaxes moveaxis expand_dims squeeze ravel flatten matmul dot vdot inner outer
tensordot sum mean var std prod argmax argmin sort argsort cumsum cumprod norm vector_norm matrix_norm svd qr eigh eig
cholesky inv pinv
det trace diagonal take gather take_along_axis zeros_like ones_like full_like softmax log_softmax relu gelu sigmoid
logsumexp shape ndim flip roll tile pad isnan isfinite isinf nonzero
"""
STRONG_FIRST = frozenset(_STRONG_FIRST.split())
STRONG_SECOND = words("matmul dot vdot inner outer tensordot")
BINARY = words("add subtract multiply divide power maximum minimum matmul dot")
