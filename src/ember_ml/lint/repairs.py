"""Which op takes the place of which native function or method, and how its arguments are renamed.

A native name that is missing here, or a keyword that is not listed, gets no repair: the finding stays and says why the
call is a problem, but the text is left alone.
"""

from __future__ import annotations

from ember_ml.lint.tables import pairs, words

# Same name and same positional order in NumPy, torch, MLX and jax.numpy as in ops.
SAME = words(
    """
    abs add ceil conj copysign exp exp2 expm1 floor floor_divide fmax fmin fmod gcd heaviside hypot imag lcm log log10
    log1p log2 logaddexp logaddexp2 maximum minimum multiply nan_to_num negative nextafter positive power real
    reciprocal rsqrt sign signbit sinc sqrt cbrt square subtract true_divide divide trunc sin cos tan arcsin arccos
    arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh deg2rad rad2deg angle erf erfc erfinv lgamma digamma
    bitwise_and bitwise_or bitwise_xor isclose isfinite isinf isnan isneginf isposinf isreal isin logical_and
    logical_or logical_not logical_xor where zeros ones full empty zeros_like ones_like full_like empty_like eye
    identity arange linspace logspace geomspace meshgrid tri tril triu diag diagflat vander reshape swapaxes moveaxis
    expand_dims squeeze ravel flatten broadcast_to concatenate stack vstack hstack dstack column_stack split
    array_split vsplit hsplit dsplit tile repeat pad roll rot90 flip fliplr flipud take take_along_axis searchsorted
    digitize bincount sum mean var std prod max min median percentile quantile average ptp argmax argmin sort argsort
    argpartition cumsum cumprod diff corrcoef cov nansum nanmean nanvar nanstd nanmax nanmin nanmedian nanprod
    nanargmax nanargmin matmul dot vdot inner outer tensordot einsum kron cross trace diagonal norm equal not_equal
    less less_equal greater greater_equal all any count_nonzero allclose clip transpose argwhere softmax log_softmax
    sigmoid relu softplus polar logsumexp round isdtype
    """
)

RENAMED = pairs(
    """
    absolute=abs fabs=abs cat=concatenate concat=concatenate clamp=clip unsqueeze=expand_dims mm=matmul bmm=matmul
    mv=matmul mul=multiply sub=subtract div=divide neg=negative pow=power eq=equal ne=not_equal lt=less le=less_equal
    gt=greater ge=greater_equal asin=arcsin acos=arccos atan=arctan atan2=arctan2 asinh=arcsinh acosh=arccosh
    atanh=arctanh amax=max amin=min array=convert_to_tensor asarray=convert_to_tensor
    ascontiguousarray=convert_to_tensor tensor=convert_to_tensor as_tensor=convert_to_tensor
    from_numpy=convert_to_tensor remainder=mod mod=mod row_stack=vstack invert=bitwise_invert
    left_shift=bitwise_left_shift right_shift=bitwise_right_shift bitwise_not=bitwise_invert permute=transpose
    permute_dims=transpose conjugate=conj degrees=rad2deg radians=deg2rad trapz=trapezoid trapezoid=trapezoid
    divide_no_nan=divide_no_nan special.erf=erf take_along_dim=take_along_axis movedim=moveaxis swapdims=swapaxes
    sgn=sign addexp=logaddexp nn.functional.relu=relu nn.functional.gelu=gelu nn.functional.softmax=softmax
    nn.functional.sigmoid=sigmoid nn.functional.silu=silu nn.functional.elu=elu nn.functional.softplus=softplus
    nn.functional.log_softmax=log_softmax linalg.norm=norm linalg.inv=inv linalg.pinv=pinv linalg.det=det
    linalg.svd=svd linalg.qr=qr linalg.solve=solve linalg.eigh=eigh linalg.eig=eig linalg.eigvalsh=eigvalsh
    linalg.cholesky=cholesky linalg.matrix_rank=matrix_rank linalg.matrix_power=matrix_power linalg.slogdet=slogdet
    linalg.lstsq=lstsq inverse=inv det=det svd=svd qr=qr logdet=logdet slogdet=slogdet cholesky=cholesky pinverse=pinv
    fft.fft=fft fft.ifft=ifft fft.rfft=rfft fft.irfft=irfft fft.fft2=fft2 fft.ifft2=ifft2 fft.fftfreq=fftfreq
    fft.rfftfreq=rfftfreq fft.fftshift=fftshift fft.ifftshift=ifftshift fft.fftn=fftn fft.ifftn=ifftn
    """
)

# Keyword in the native call: keyword of the op.
KEYWORDS = pairs(
    """
    axis=axis dim=axis keepdims=keepdims keepdim=keepdims dtype=dtype device=device a=x x=x input=x x1=x x2=y other=y
    y=y b=y k=k n=n shape=shape dims=axis
    """
)

# Positional parameters after the tensors, in the native order, by native last name: checked before a call is rewritten
# so that an argument is never moved onto another parameter.
POSITIONAL_LIMIT = {
    key: int(value)
    for key, value in pairs(
        """
    sum=2 mean=2 max=2 min=2 prod=2 std=2 var=2 all=2 any=2 argmax=2 argmin=2 amax=2 amin=2 cumsum=2 cumprod=2 array=1
    asarray=1 tensor=1 as_tensor=1 from_numpy=1 zeros=1 ones=1 empty=1 full=2 round=2 norm=1 linalg.norm=1 eye=1
    arange=3 linspace=3 clip=3 clamp=3 where=3 concatenate=2 stack=2 vstack=1 hstack=1 einsum=9 repeat=3 pad=2
    median=2 sort=2 argsort=2 diag=2 softmax=2 meshgrid=9 column_stack=1 dstack=1 zeros_like=1 ones_like=1
    empty_like=1 full_like=2
    """
    ).items()
}

# torch's own reductions by keyword or none: torch.max(x, dim) and friends give a pair, torch.std divides by n - 1.
TORCH_DEVIATES = frozenset(
    {"max", "min", "median", "sort", "var", "std", "var_mean", "diff", "mode", "cross", "where_", "take", "repeat"}
)

METHODS = pairs(
    """
    mean=mean sum=sum prod=prod max=max min=min reshape=reshape transpose=transpose argmax=argmax argmin=argmin
    squeeze=squeeze flatten=flatten ravel=ravel cumsum=cumsum cumprod=cumprod std=std var=var clip=clip clamp=clip
    abs=abs exp=exp log=log sqrt=sqrt square=square sin=sin cos=cos tanh=tanh sigmoid=sigmoid relu=relu matmul=matmul
    dot=dot mm=matmul bmm=matmul unsqueeze=expand_dims swapaxes=swapaxes add=add sub=subtract mul=multiply div=divide
    pow=power neg=negative round=round floor=floor ceil=ceil all=all any=any softmax=softmax log_softmax=log_softmax
    conj=conj trace=trace diagonal=diagonal repeat=repeat argsort=argsort sign=sign rsqrt=rsqrt reciprocal=reciprocal
    split=split moveaxis=moveaxis logsumexp=logsumexp expand_dims=expand_dims permute=transpose log1p=log1p
    expm1=expm1 isnan=isnan isfinite=isfinite tril=tril triu=triu
    """
)
VARIADIC_SHAPE = frozenset({"reshape", "permute", "transpose"})  # x.reshape(2, 3) takes the shape as separate arguments

OPERATORS = pairs(
    """
    Add=add Sub=subtract Mult=multiply Div=divide FloorDiv=floor_divide Mod=mod Pow=power MatMult=matmul
    BitAnd=bitwise_and BitOr=bitwise_or BitXor=bitwise_xor LShift=bitwise_left_shift RShift=bitwise_right_shift
    USub=negative UAdd=positive Invert=bitwise_invert Eq=equal NotEq=not_equal Lt=less LtE=less_equal Gt=greater
    GtE=greater_equal
    """
)
SYMBOLS = pairs(
    """
    Add=+ Sub=- Mult=* Div=/ FloorDiv=// Mod=% Pow=** MatMult=@ BitAnd=& BitOr=| BitXor=^ LShift=<< RShift=>> USub=-
    UAdd=+ Invert=~ Eq=== NotEq=!= Lt=< LtE=<= Gt=> GtE=>=
    """
)


def op_for(native: str) -> str | None:
    """The op for a native function's dotted name, or ``None``.

    >>> op_for("numpy.mean"), op_for("torch.unsqueeze"), op_for("numpy.nditer")
    ('mean', 'expand_dims', None)
    """
    library, _, rest = native.partition(".")
    if native.startswith(("mlx.core.", "jax.numpy.")):
        rest = native.split(".", 2)[2]
    if library == "torch" and rest in TORCH_DEVIATES:
        return None
    if rest in SAME:
        return rest
    return RENAMED.get(rest)
