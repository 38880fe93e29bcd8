"""Which op takes the place of which native function or method, and how its arguments are renamed.

A native name that is missing here, or a keyword that is not listed, gets no repair: the finding stays and says why the
call is a problem, but the text is left alone.
"""

from __future__ import annotations

import sys

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

# The repair targets that take a keyword; a native call with one that its op does not take has no counterpart.
_TAKES = {
    "axis": words(
        """
        all any argmax argmin argpartition argsort array_split average concatenate count_nonzero cross cumprod
        cumsum diff expand_dims fft flip geomspace ifft irfft linspace log_softmax logspace logsumexp max mean
        median min nanargmax nanargmin nanmax nanmean nanmedian nanmin nanprod nanstd nansum nanvar norm
        percentile prod ptp quantile repeat rfft roll softmax sort split squeeze stack std sum take
        take_along_axis trapezoid var
        """
    ),
    "keepdims": words(
        """
        all any argmax argmin average count_nonzero logsumexp max mean median min nanargmax nanargmin nanmax
        nanmean nanmedian nanmin nanprod nanstd nansum nanvar norm percentile prod ptp quantile std sum var
        """
    ),
    "dtype": words(
        """
        arange convert_to_tensor cumprod cumsum empty empty_like eye fftfreq full full_like geomspace identity
        isdtype linspace logspace nanprod nansum ones ones_like prod rfftfreq sum trace tri zeros zeros_like
        """
    ),
    "device": words(
        """
        arange convert_to_tensor empty empty_like eye fftfreq full full_like geomspace identity linspace logspace
        ones ones_like rfftfreq tri zeros zeros_like
        """
    ),
    "k": words("diag diagflat eye rot90 tri tril triu"),
    "n": words("diff fft fftfreq identity ifft irfft matrix_power rfft rfftfreq"),
    "shape": words("broadcast_to empty full ones reshape zeros"),
}
_OTHER_NAMES = words(  # their first parameters are not called x and y
    """
    arange convert_to_tensor einsum empty eye fftfreq full geomspace identity isdtype linspace logspace lstsq meshgrid
    ones rfftfreq solve tri zeros
    """
)


def keyword_for(op: str, native: str) -> str | None:
    """Return the keyword of an op for a keyword of the native call, or ``None`` if the op has none.

    >>> keyword_for("sum", "dim"), keyword_for("sum", "dtype"), keyword_for("mean", "dtype")
    ('axis', 'dtype', None)
    """
    found = KEYWORDS.get(native)
    if found in ("x", "y"):
        return None if op in _OTHER_NAMES else found
    return found if found is not None and op in _TAKES[found] else None


# How many positional arguments mean the same in the native function and in the op; two unless it stands here. A call
# with more is left alone, so that an argument is never moved onto another parameter.
_ONE = words(
    """
    array asarray tensor as_tensor from_numpy zeros ones empty norm linalg.norm eye vstack hstack column_stack dstack
    zeros_like ones_like empty_like abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin
    asinh atan atanh bitwise_not cbrt ceil conj conjugate cos cosh deg2rad degrees exp exp2 expm1 fabs floor invert
    isfinite isinf isnan isneginf isposinf linalg.eigh linalg.eigvalsh linalg.matrix_rank linalg.pinv log log10 log1p
    log2 logical_not nan_to_num negative positive rad2deg radians ravel reciprocal sign signbit sin sinh sqrt square tan
    tanh trunc flatten
    """
)
_THREE = words(
    """
    arange linspace logspace geomspace clip clamp where repeat allclose isclose argpartition array_split split average
    bincount corrcoef cov diagonal trace diff digitize fft.fft fft.ifft fft.rfft fft.irfft fft.fft2 fft.ifft2 fft.fftn
    fft.ifftn linalg.lstsq moveaxis movedim swapaxes swapdims percentile quantile roll rot90 searchsorted take
    take_along_axis take_along_dim tensordot trapezoid trapz tri vander
    """
)


def positional_limit(native: str) -> int:
    """Return how many positional arguments of a native function keep their places in the op.

    >>> positional_limit("exp"), positional_limit("sum"), positional_limit("where")
    (1, 2, 3)
    """
    if native in ("einsum", "meshgrid"):
        return sys.maxsize
    return 1 if native in _ONE else 3 if native in _THREE else 2


# torch.max(x, dim) and friends give a pair, torch.std divides by n - 1, torch.split takes the size of the parts.
TORCH_DEVIATES = frozenset(
    {
        "max",
        "min",
        "median",
        "sort",
        "var",
        "std",
        "var_mean",
        "diff",
        "mode",
        "cross",
        "take",
        "repeat",
        "split",
        "nanmedian",
    }
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
    """Return the op for a native function's dotted name, or ``None``.

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
