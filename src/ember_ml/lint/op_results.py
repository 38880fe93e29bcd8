"""The names of the ops by what they return. Written by utils/make_tables.py."""

from ember_ml.lint.tables import words

RETURNS_TENSOR = words("""
abs absolute acos acosh adaptive_average_pool adaptive_max_pool add affine_transform all allclose amax amin angle
any append arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argpartition argsort argwhere
array asarray asin asinh astype atan atan2 atanh average average_pool bartlett bartlett_window batch_normalization
bernoulli beta binary_crossentropy bincount binomial bitwise_and bitwise_invert bitwise_left_shift bitwise_not
bitwise_or bitwise_right_shift bitwise_xor blackman blackman_window broadcast_to cast categorical
categorical_crossentropy cbrt cdist ceil celu center_crop choice cholesky cholesky_inverse clip column_stack concat
concatenate conj conjugate conv conv_transpose convert_to_tensor convolve copy copysign corrcoef correlate cos cosh
cosine_similarity count_nonzero cov crop_images cross ctc_loss cumprod cumsum cumulative_prod cumulative_sum deg2rad
depthwise_conv dequantize det diag diagflat diagonal diff digamma digitize divide divide_no_nan dot
dot_product_attention dropout dstack eigvals eigvalsh einsum elu empty empty_like equal erf erfc erfinv
euclidean_distance exp exp2 expand_dims expm expm1 exponential extract_patches eye fabs fft fft2 fftconvolve fftfreq
fftn fftshift flatten flip fliplr flipud floor floor_divide fmax fmin fmod frame from_dlpack full full_like gamma
gather gaussian gaussian_blur gaussian_window gcd gelu geomspace get_item glu greater greater_equal
group_normalization gumbel hamming hamming_window hann_window hanning hard_shrink hard_sigmoid hard_silu hard_tanh
heaviside hfft hstack hsv_to_rgb huber_loss hypot i0 identity ifft ifft2 ifftn ifftshift ihfft imag in_top_k
index_update inner integers inv irfft irfft2 irfftn isclose isfinite isin isinf isnan isneginf isposinf isreal istft
kaiser kaiser_window kl_divergence kron laplace layer_normalization lcm ldexp leaky_relu less less_equal lgamma
linear linspace log log10 log1p log2 log_cosh_loss log_sigmoid log_softmax logaddexp logaddexp2 logdet logical_and
logical_not logical_or logical_xor logspace logsumexp lu_solve map_coordinates matmul matrix_norm matrix_power
matrix_rank matrix_transpose max max_pool maximum mean mean_absolute_error mean_squared_error median mel_filterbank
min minimum mish mod moveaxis multi_hot multiply nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax nanmean
nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar negative nextafter norm normal normalize
not_equal one_hot ones ones_like outer overlap_add pad pad_images percentile permutation permute_dims
perspective_transform pinv poisson polar positive pow power prelu prod psnr ptp put_along_axis quantile
quantized_linear rad2deg randint random_bernoulli random_beta random_binomial random_categorical random_choice
random_exponential random_gamma random_gumbel random_integers random_laplace random_normal random_permutation
random_poisson random_truncated_normal random_uniform ravel ravel_multi_index real reciprocal reduce_max reduce_mean
reduce_min reduce_prod reduce_std reduce_sum reduce_var relu relu6 remainder repeat resample resample_poly reshape
resize rfft rfft2 rfftfreq rfftn rgb_to_grayscale rgb_to_hsv rgb_to_yuv rms_normalization roll rot90
rotary_embedding rotate round rsqrt saturate_cast scale_and_translate scatter scatter_add scatter_max scatter_mean
scatter_min scatter_update searchsorted segment_max segment_mean segment_min segment_prod segment_sum select selu
separable_conv shuffle sigmoid sign signbit silu sin sinc sinh slice slice_update soft_shrink softmax softplus
softsign solve solve_triangular sort sparse_categorical_crossentropy sparsemax spectrogram sqrt square squareplus
squeeze ssim stack std stft stop_gradient subtract sum svdvals swapaxes swish take take_along_axis tan tanh
tanh_shrink tensordot threshold tile to_device trace transpose trapezoid tri tril triu true_divide trunc
truncated_normal uniform unique unique_values vander var vdot vecdot vector_norm view vstack where xlogy yuv_to_rgb
zeros zeros_like
""")

RETURNS_TENSORS = words("""
array_split broadcast_arrays conjugate_gradient dsplit eig eigh gmres histogram hsplit lstsq lu_factor meshgrid
moments moments_normalization newton_root nonzero qr slogdet split svd top_k tril_indices triu_indices unique_all
unique_counts unique_inverse unravel_index unstack vsplit
""")

RETURNS_OTHER = words("""
Generator bfloat16 bool broadcast_shapes can_cast checkpoint compile complex128 complex64 custom_gradient dtype
finfo float16 float32 float64 get_available_devices get_backend get_default_device get_device grad hessian iinfo
int16 int32 int64 int8 is_available is_tensor isdtype item jacobian jvp memory_info ndim result_type save seed
set_backend set_default_device shape size synchronize to_numpy uint16 uint32 uint64 uint8 use_backend use_device
value_and_grad vectorize vjp vmap
""")

RETURNS_UNKNOWN = words("""
associative_scan cond fori_loop load map odeint scan switch vectorized_map while_loop
""")

DTYPES = words("""
bfloat16 bool complex128 complex64 float16 float32 float64 int16 int32 int64 int8 uint16 uint32 uint64 uint8
""")
