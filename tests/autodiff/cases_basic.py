"""Gradient cases of arithmetic, functions of one number, shape, joining, indexing, reductions, order and sums."""

from __future__ import annotations

from tests.autodiff.case import NOT_DIFFERENTIABLE, Numbers, binary, case, numbers, reduction, unary

# arithmetic
for name in ("add", "subtract", "multiply"):
    binary(name, complex_too=True)
binary("divide", y={"low": 0.5}, complex_too=True)
binary("divide_no_nan", y={"low": 0.5})
binary("mod", x={"low": 0.1, "high": 0.9}, y={"low": 1.1, "high": 2.0})
binary("fmod", x={"low": 2.1, "high": 2.9}, y={"low": 1.1, "high": 1.9})
binary("power", x={"low": 0.5}, y={"low": -1.5, "high": 2.5})
binary("maximum", x={"low": 0.0, "high": 0.4}, y={"low": 0.5, "high": 1.0}, second=False)
binary("minimum", x={"low": 0.0, "high": 0.4}, y={"low": 0.5, "high": 1.0}, second=False)
binary("fmax", x={"low": 0.0, "high": 0.4}, y={"low": 0.5, "high": 1.0}, second=False)
binary("fmin", x={"low": 0.0, "high": 0.4}, y={"low": 0.5, "high": 1.0}, second=False)
binary("floor_divide", x={"low": 0.1, "high": 0.9}, y={"low": 1.1, "high": 2.0}, second=False)
for name in ("square", "negative", "positive"):
    unary(name, complex_too=True)
unary("reciprocal", 0.5, 2.0, complex_too=True)
unary("abs", 0.5, 2.0)
unary("fabs", 0.5, 2.0)
case("abs", x=numbers(5, kind="complex"), label="complex")
for name in ("sign", "ceil", "floor", "trunc", "round"):
    unary(name, 0.1, 0.4, second=False)
unary("nan_to_num")
case("clip", x=numbers(3, 4), min=-1.0, max=1.0, second=False)
case(
    "clip",
    ("x", "min", "max"),
    x=numbers(3, 4),
    min=numbers(low=-1.1, high=-0.9),
    max=numbers(low=0.9, high=1.1),
    second=False,
)
binary("heaviside", x={"low": 0.5, "high": 1.0}, second=False)

# functions of one number
for name in ("exp", "exp2", "expm1", "sin", "cos", "sinh", "cosh", "tanh", "arctan", "arcsinh", "deg2rad", "rad2deg"):
    unary(name, complex_too=name in ("exp", "sin", "cos", "sinh", "cosh", "tanh"))
for name in ("log", "log2", "log10", "sqrt", "rsqrt"):
    unary(name, 0.4, 3.0, complex_too=name in ("log", "sqrt"))
unary("log1p", -0.5, 3.0)
unary("cbrt", 0.4, 3.0)
unary("tan", -1.2, 1.2)
for name in ("arcsin", "arccos", "arctanh"):
    unary(name, -0.8, 0.8)
unary("arccosh", 1.3, 3.0)
unary("sinc", 0.1, 2.4)
binary("logaddexp")
binary("logaddexp2")
binary("arctan2", x={"low": 0.3}, y={"low": 0.3})
binary("hypot", x={"low": 0.3}, y={"low": 0.3})
binary("copysign", x={"low": 0.3}, y={"low": 0.3}, second=False)
case("ldexp", x=numbers(4), y=numbers(4, kind="int"))
case("real", x=numbers(4, kind="complex"), label="complex")
case("imag", x=numbers(4, kind="complex"), label="complex")
case("conj", x=numbers(4, kind="complex"), label="complex")
case("angle", x=numbers(4, kind="complex", low=0.3), label="complex")
unary("real")
unary("conj")
case("polar", ("x", "y"), x=numbers(4, low=0.5), y=numbers(4, seed=1), second=False)
for name in ("erf", "erfc"):
    unary(name)
unary("erfinv", -0.8, 0.8)
unary("lgamma", 0.5, 4.0)
unary("digamma", 0.6, 4.0, second=False)
binary("xlogy", x={"low": 0.3}, y={"low": 0.3})

# conversion and shape
unary("copy")
case("cast", x=numbers(2, 3), dtype="float64")
case("reshape", x=numbers(2, 6), shape=(3, -1))
case("transpose", x=numbers(2, 3, 4), axes=(2, 0, 1))
case("transpose", x=numbers(2, 3, 4), label="reversed")
case("swapaxes", x=numbers(2, 3, 4), axis1=0, axis2=-1)
case("moveaxis", x=numbers(2, 3, 4), source=0, destination=-1)
case("expand_dims", x=numbers(2, 3), axis=1)
case("squeeze", x=numbers(2, 1, 3))
case("ravel", x=numbers(2, 3))
case("flatten", x=numbers(2, 3))
case("matrix_transpose", x=numbers(2, 3, 4))
case("broadcast_to", x=numbers(3, 1), shape=(2, 3, 4))
case("broadcast_arrays", "arrays", arrays=[numbers(3, 1), numbers(4, seed=1)])
case("flip", x=numbers(2, 3), axis=1)
for name in ("fliplr", "flipud", "rot90"):
    case(name, x=numbers(2, 3))
case("roll", x=numbers(2, 5), shift=2, axis=1)
case("roll", x=numbers(2, 5), shift=3, label="flat")

# joining
case("append", ("x", "values"), x=numbers(2, 3), values=numbers(1, 3, seed=1), axis=0)
case("concatenate", "x", x=[numbers(2, 3), numbers(1, 3, seed=1)], axis=0)
case("concatenate", "x", x=[numbers(2, 3), numbers(4, seed=1)], axis=None, label="flat")
case("stack", "x", x=[numbers(3), numbers(3, seed=1)], axis=1)
case("unstack", x=numbers(3, 2))
case("split", x=numbers(4, 2), indices_or_sections=2)
case("array_split", x=numbers(5, 2), indices_or_sections=3)
case("vsplit", x=numbers(4, 2), indices_or_sections=2)
case("hsplit", x=numbers(2, 4), indices_or_sections=2)
case("dsplit", x=numbers(2, 2, 4), indices_or_sections=2)
for name in ("vstack", "hstack", "dstack", "column_stack"):
    case(name, "x", x=[numbers(2, 3), numbers(2, 3, seed=1)])
case("tile", x=numbers(2, 3), reps=(2, 2))
case("repeat", x=numbers(2, 3), repeats=2, axis=1)
case("repeat", x=numbers(3), repeats=[1, 0, 2], axis=0, label="each")
case("pad", x=numbers(2, 3), pad_width=((1, 0), (2, 1)))
for mode in ("edge", "reflect", "symmetric", "wrap"):
    case("pad", x=numbers(4), pad_width=2, mode=mode, label=mode)
case("tril", x=numbers(3, 4), k=1)
case("triu", x=numbers(3, 4), k=-1)
case("diag", x=numbers(3), k=1, label="made")
case("diag", x=numbers(3, 4), k=1, label="read")
case("diagflat", x=numbers(3))
case("diagonal", x=numbers(2, 3, 4), offset=1)
case("trace", x=numbers(3, 3))
case("vander", x=numbers(3), N=3)
case("meshgrid", "arrays", arrays=[numbers(3), numbers(2, seed=1)])
case("meshgrid", "arrays", arrays=[numbers(3), numbers(2, seed=1)], indexing="ij", label="ij")

# parts of tensors
case("get_item", x=numbers(4, 3), key=(slice(None, None, 2), -1))
case("get_item", x=numbers(4, 3), key=([0, 2, 0],), label="rows twice")
case("get_item", x=numbers(4, 3), key=(Ellipsis, None, 1), label="new axis")
case("index_update", ("x", "values"), x=numbers(4, 3), key=(slice(1, 3),), values=numbers(3, seed=1))
case("take", x=numbers(4, 3), indices=numbers(2, 2, kind="int", low=0, high=3), axis=0)
case("take", x=numbers(4, 3), indices=[-1, 1, 1], axis=1, label="negative")
case("take", x=numbers(2, 3), indices=[5, 0], axis=None, label="flat")
case("take_along_axis", x=numbers(3, 4), indices=numbers(3, 2, kind="int", low=0, high=3), axis=1)
case("put_along_axis", ("x", "values"), x=numbers(3, 4), indices=[[0], [3], [1]], values=numbers(3, 1, seed=1), axis=1)
case("gather", x=numbers(3, 4), axis=1, indices=[[0, 1], [2, 3], [0, 0]])
case("slice", x=numbers(4, 5), start_indices=[1, 0], shape=[2, 3])
case("slice_update", ("x", "updates"), x=numbers(4, 5), start_indices=[1, 0], updates=numbers(2, 3, seed=1))
case("where", ("x", "y"), condition=[[True], [False], [True]], x=numbers(3, 4), y=numbers(4, seed=1))

# cells and segments
IDS = [0, 2, 2, 0, 1]
for name in ("segment_sum", "segment_mean", "segment_prod"):
    case(name, "data", data=numbers(5, 2), segment_ids=IDS, num_segments=4)
for name in ("segment_max", "segment_min"):
    case(name, "data", data=numbers(5, 2, apart=True), segment_ids=IDS, num_segments=3, second=False)
case("bincount", "weights", x=IDS, weights=numbers(5), minlength=4)

# reductions
for name in ("sum", "mean", "logsumexp"):
    reduction(name)
    case(name, x=numbers(2, 0, 3), axis=0, label="empty")
reduction("prod")
case("prod", x=numbers(3, 0), axis=1, label="empty")
for name in ("var", "std"):
    case(name, x=numbers(2, 3, 4), label="all")
    case(name, x=numbers(2, 3, 4), axis=(0, 2), correction=1, label="axes")
    case(name, x=numbers(2, 3, 4), axis=1, keepdims=True, label="kept")
for name in ("max", "min"):
    reduction(name, apart=True, second=False)
    for initial in (-0.3, 0.4):
        start = Numbers((initial,), ())
        case(name, ("x", "initial"), x=numbers(3, 2, apart=True), axis=0, initial=start, second=False, label="initial")
case("ptp", x=numbers(3, 4, apart=True), axis=1, second=False)
case("average", ("x", "weights"), x=numbers(3, 4), weights=numbers(4, low=0.5), axis=1)
case("moments", x=numbers(3, 4), axes=1)
case("median", x=numbers(3, 5, apart=True), axis=1, second=False)
case("median", x=numbers(2, 4, apart=True), second=False, label="even")
case("quantile", x=numbers(3, 5, apart=True), q=[0.3, 0.75], axis=1, second=False)
for method in ("hazen", "averaged_inverted_cdf", "nearest", "midpoint"):
    case("quantile", x=numbers(3, 5, apart=True), q=[0.2, 0.75], axis=1, method=method, second=False, label=method)
case("percentile", x=numbers(4, 3, apart=True), q=40.0, axis=0, keepdims=True, second=False)
case("sort", x=numbers(3, 5, apart=True), axis=1, second=False)
case("sort", x=numbers(3, 2, apart=True), axis=None, second=False, label="all")
case("sort", x=numbers(5, apart=True), descending=True, second=False, label="descending")
case("top_k", x=numbers(3, 5, apart=True), k=2, second=False)
case("cumsum", x=numbers(3, 4), axis=1)
case("cumsum", x=numbers(4), label="vector")
case("cumprod", x=numbers(3, 4), axis=1)
case("cumulative_sum", x=numbers(3, 4), axis=1, include_initial=True)
case("diff", x=numbers(3, 5), n=2)
case("trapezoid", ("y", "x"), y=numbers(3, 4), x=numbers(4, apart=True))
case("cov", x=numbers(3, 5))
case("corrcoef", x=numbers(3, 5))

# products
case("matmul", ("x", "y"), x=numbers(3, 4), y=numbers(4, 2, seed=1))
case("matmul", ("x", "y"), x=numbers(4), y=numbers(4, seed=1), label="vectors")
case("matmul", ("x", "y"), x=numbers(4), y=numbers(2, 4, 3, seed=1), label="vector and batch")
case("matmul", ("x", "y"), x=numbers(2, 3, 4), y=numbers(4, seed=1), label="batch and vector")
case("matmul", ("x", "y"), x=numbers(2, 1, 3, 4), y=numbers(5, 4, 2, seed=1), label="batches")
case("matmul", ("x", "y"), x=numbers(5, 3, 4), y=numbers(4, 2, seed=1), label="batch and matrix")
case("matmul", ("x", "y"), x=numbers(0, 4), y=numbers(4, 2, seed=1), label="empty")
case(
    "matmul",
    ("x", "y"),
    x=numbers(2, 3, kind="complex"),
    y=numbers(3, 2, kind="complex", seed=1),
    label="complex",
    second=False,
)

NOT_DIFFERENTIABLE.update(
    nextafter="the neighbour of a number is no smooth function of it",
    view="the bytes of a number are no smooth function of it",
    unique="which values there are does not change smoothly",
    unique_values="which values there are does not change smoothly",
    unique_all="which values there are does not change smoothly",
    unique_counts="which values there are does not change smoothly",
    unique_inverse="which values there are does not change smoothly",
)
