"""Gradient cases of scatters, statistics without NaN, and what makes tensors of tensors."""

from __future__ import annotations

from ember_ml import ops
from tests.autodiff.case import binary, case, numbers, unary

# cells
IDS = [0, 2, 2, 0, 1]
for aggregation in ("add", "mean", "mul", "softmax"):
    case("scatter", "values", values=numbers(5, 2), indices=IDS, dim_size=4, aggr=aggregation, label=aggregation)
for aggregation in ("max", "min"):
    values = numbers(5, 2, apart=True)
    case("scatter", "values", values=values, indices=IDS, aggr=aggregation, label=aggregation, second=False)
case("scatter", "values", values=numbers(2, 4), indices=[1, 0, 1], axis=1, label="fewer indices along an axis")
case("scatter", "values", values=numbers(4, 2), indices=[1, 0, 1], aggr="softmax", label="fewer shares")
for name in ("scatter_add", "scatter_mean"):
    case(name, "values", values=numbers(5, 2), indices=IDS, dim_size=4)
for name in ("scatter_max", "scatter_min"):
    case(name, "values", values=numbers(5, 2, apart=True), indices=IDS, dim_size=4, second=False)
case("scatter_update", ("x", "updates"), x=numbers(3, 2), indices=[[0, 1], [2, 0]], updates=numbers(2, seed=1))
case("scatter_update", ("x", "updates"), x=numbers(3, 2), indices=[[2]], updates=numbers(1, 2, seed=1), label="rows")
case(
    "select",
    ("choices", "default"),
    conditions=[[True, False, False], [True, True, False]],
    choices=[numbers(3), numbers(2, 1, seed=1)],
    default=numbers(seed=2),
)

# statistics of what is not NaN
for name in ("nansum", "nanprod", "nanmean", "nanvar", "nanstd"):
    case(name, x=numbers(2, 3, 2), axis=(0, 2), keepdims=True)
    case(name, x=numbers(3, 4), label="all")
for name in ("nancumsum", "nancumprod", "cumulative_prod"):
    case(name, x=numbers(3, 4), axis=1)
for name in ("nanmax", "nanmin", "nanmedian"):
    case(name, x=numbers(3, 4, apart=True), axis=1, second=False)
case("nanquantile", x=numbers(3, 5, apart=True), q=[0.3, 0.75], axis=1, second=False)
for method in ("weibull", "averaged_inverted_cdf", "nearest", "midpoint"):
    case("nanquantile", x=numbers(3, 5, apart=True), q=[0.2, 0.75], axis=1, method=method, second=False, label=method)
case("nanpercentile", x=numbers(3, 4, apart=True), q=40.0, axis=0, keepdims=True, second=False)
binary("gaussian", call=lambda x, y: ops.gaussian(x, y, 0.7))
case("gaussian", ("x", "mu", "sigma"), x=numbers(3), mu=numbers(seed=1), sigma=numbers(3, seed=2, low=0.5))

# tensors of tensors
case("array", "data", data=numbers(2, 3))
case("asarray", x=numbers(2, 3))
case("from_dlpack", x=numbers(2, 3))
case("convert_to_tensor", "data", data=numbers(2, 3))
case("saturate_cast", x=numbers(2, 3), dtype="float64", label="to float64")
case("full", "fill_value", shape=(2, 3), fill_value=numbers(3))
case("full_like", ("x", "fill_value"), x=numbers(2, 3), fill_value=numbers(seed=1))
for name in ("zeros_like", "ones_like"):
    case(name, x=numbers(2, 3))
for name in ("linspace", "logspace"):
    case(name, ("start", "stop"), start=numbers(2), stop=numbers(2, seed=1), num=4)
    case(name, ("start", "stop"), start=numbers(), stop=numbers(seed=1), num=4, endpoint=False, label="0-d")
case("geomspace", ("start", "stop"), start=numbers(2, low=0.5), stop=numbers(2, seed=1, low=0.5), num=4)
padding = {"x": numbers(2, 3), "constant_values": numbers(seed=1)}
case("pad", ("x", "constant_values"), **padding, pad_width=((1, 0), (2, 1)), label="by its constant")
case("to_device", x=numbers(2, 3), device="cpu")
unary("i0")
points = numbers(6, seed=1)
case("histogram", "weights", x=points, bins=[-1.0, 0.0, 2.0], weights=numbers(6))
case("histogram", "weights", x=points, bins=3, weights=numbers(6, low=0.5), density=True, label="density")
