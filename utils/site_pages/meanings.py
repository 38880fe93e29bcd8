"""Find what a parameter means: in its docstring, in that of a relative, or in the table of common names."""

from __future__ import annotations

import inspect
import re
import sys
from typing import Any

from site_pages.text import link_types, read, table, to_markdown

__all__ = ["describe_parameters", "find_meaning", "show_parameters"]

_SHARED = """
x: The input: a tensor, or what can become one.
y: The second input.
axis: The axis or axes along which it computes; negative ones count from the end.
axes: The axes, one for each transformed dimension; the last ones by default.
axis1: The first of the two axes.
axis2: The second of the two axes.
dtype: The dtype of the result, or of the parameters of a layer.
device: The device of the result; the default device if left out.
keepdims: Whether the reduced axes stay, with length 1.
shape: The shape, an integer or a tuple of integers.
seed: An integer or a `Generator`; without it the numbers come from the stream of the process.
f: The function.
norm: The scaling: "backward" divides in the inverse transform, "forward" in this one, "ortho" by the root in both.
n: The number of elements, or the length to which the axis is cut or padded.
k: The diagonal, 0 being the main one; or how many elements are wanted.
indices: Integers that name elements; negative ones count from the end.
scale: The factor by which it is multiplied.
target: The true values.
output: The predicted values.
s: The lengths to which the axes are cut or padded.
M: The number of samples.
values: The values to store or to look up.
data_format: "channels_last" or "channels_first".
images: One image or a batch of them, as `data_format` says.
interpolation: How numbers between elements are found, as in the description.
antialias: Whether all elements take part where images become smaller.
fill_mode: What is outside of an image: "constant", "nearest", "wrap", "mirror" or "reflect".
fill_value: What stands outside of an image.
b: The second operand.
a: The first operand.
A: The matrix, or a function that multiplies with it.
data: The data: a tensor, a number, nested lists, an array of any library.
epsilon: A small number that keeps a division finite.
sorted: Whether the result is in order.
window_length: The number of samples.
periodic: Whether it is periodic, as transforms need, rather than symmetric.
strides: The steps of the window; one number, or one for each spatial axis.
padding: "valid", "same", or the number of zeros at the ends of each spatial axis.
mode: One of the modes in the description.
offset: The number that is added, or the diagonal that is meant.
rtol: The relative tolerance.
atol: The absolute tolerance.
tol: The tolerance at which the iteration ends.
maxiter: The most steps of the iteration.
hop_length: The number of samples from one frame to the next.
frame_length: The number of samples in a frame.
indices_or_sections: How many equal parts, or the indices before which to cut.
segment_ids: The segment of each element.
num_segments: How many segments there are.
dim_size: The length of the result along the axis.
correction: What is subtracted from the number of elements before the variance is divided by it.
ddof: What is subtracted from the number of elements before it is divided by.
alpha: The parameter of the formula.
beta: The parameter of the formula.
num: The number of elements.
start: The first value, or the first axis.
stop: The end.
step: The distance between two elements.
dilation_rate: The distance between the elements of the kernel.
argnums: Which arguments are differentiated: a position, a name, or a tuple of those.
upper: Whether the upper triangle is used.
lower: Whether the lower triangle is used.
ord: The order of the norm.
bias: Whether a bias is added, or the bias itself.
operands: The tensors.
arrays: The tensors.
weights: The weight of each element.
weight: The weight of each element or sample.
mean: The mean.
variance: The variance.
std: The standard deviation.
stddev: The standard deviation.
window: The weights of the samples in a frame.
center: Whether frames are centred at their sample.
normalized: Whether it is divided by the root of the length.
onesided: Whether only the bins that are not mirror images are kept.
endpoint: Whether the last value is part of the result.
key: What stands between the brackets of `x[...]`.
threshold: The threshold.
kernel: The weights that slide over the input.
from_logits: Whether `output` are logits rather than probabilities.
x0: The starting point.
has_aux: Whether the function returns a pair: the result, and anything else.
primals: The arguments at which it is computed.
tangents: The directions, one for each argument.
path: The path of the file or folder.
inputs: The width of the input; None or left out: that of the first input.
outputs: The width of the result.
hidden: The width inside.
kernel_size: The size of the window; one number, or one for each spatial axis.
pool_size: The size of the window; one number, or one for each spatial axis.
output_size: The number of positions of the result; one number, or one for each spatial axis.
initializer: How the weights start: a name or function of `nn.initializers`.
dropout: The share of values that are dropped in training.
activation: The activation: its name or a function.
layers: The number of layers.
heads: The number of attention heads.
groups: The number of groups.
affine: Whether it has a weight and a bias.
channels: The number of channels; left out: that of the first input.
num_devices: The number of processes; None: as many as were started.
rate: The learning rate.
steps: The number of updates.
end: The rate at the end.
every: The number of updates between two changes.
factor: By what the rate is multiplied.
reduction: "mean", "sum" or "none".
label_smoothing: The share of probability that is spread over all classes.
num_classes: The number of classes.
average: How the classes are taken together.
source: The rank that sends.
op: "sum", "mean", "max" or "min".
tensors: The tensors.
model: The module.
gradients: The gradients, in the order of the parameters.
name: The name.
thing: The object.
backend: The name of a backend.
backend_context: What `create` of a configuration is given.
config: The configuration: a dict with the key `type`.
folder: The part of the registry, such as "losses".
part: "training" or "test".
fill: What stands where there is no value yet; None leaves those rows out.
statistics: The names of the statistics.
length: The number of elements.
on: Whether values are checked.
value: The value.
shapes: The shapes: tuples of integers.
order: The order of the norm.
type: A dtype, or a tensor whose dtype is meant.
kind: A dtype, or the name of a kind: "bool", "integral", "real floating", "complex floating", "numeric".
from_: The dtype, or the tensor, to cast from.
arrays_and_dtypes: The tensors, dtypes and Python numbers.
N: The number of rows or columns.
increasing: Whether the powers rise from left to right.
descending: Whether the largest comes first.
q: The quantile from 0 to 1, or the percentile from 0 to 100; several give an axis in front.
loc: The location.
pad_mode: How the ends are padded: a mode of `pad`.
power: 2 for the energy, 1 for the magnitude.
num_filters: The number of filters.
num_bins: The number of bins of the spectrum.
sample_rate: The number of samples per second.
equal_nan: Whether NaN equals NaN.
nan: What NaN becomes.
posinf: What infinity becomes; the largest finite number by default.
neginf: What minus infinity becomes; the smallest finite number by default.
n_rows: The number of rows.
n_cols: The number of columns; as many as rows by default.
m: The number of columns.
indexing: "xy" (the first two axes change places) or "ij".
tensor: The tensor.
multi_index: The indices along each axis.
constant_values: The value of the padding in the mode "constant".
targets: The true classes.
predictions: The scores of the classes.
side: "left" for the first index that fits, "right" for the one after the last.
negative_slope: The slope for negative inputs.
query: The queries.
base: The base of the powers or frequencies.
frequencies: The frequencies, in place of those of `base`.
depthwise_kernel: The weights of each channel, (window..., channels, multiplier).
pointwise_kernel: The weights that mix the channels.
out_axes: The axis of the result along which the slices are stacked.
true_fn: The function that is called where the condition holds.
false_fn: The function that is called where it does not.
branches: The functions.
body_fun: The function of the counter and the carried value.
method: One of the methods in the description.
approximate: Whether the formula with `tanh` is used.
expansion: How many times wider the network of each position is inside.
gated: Whether the network of each position has a gate.
deviation: The standard deviation.
gain: The factor of the orthogonal matrix.
whiten: Whether the components are scaled to variance 1.
with_mean: Whether the mean is subtracted.
with_std: Whether it is divided by the standard deviation.
clip: Whether values outside of the range are clipped.
n_components: How many components are kept.
svd_solver: "auto", "full" or "randomized".
n_oversamples: How many additional vectors the randomized solver uses.
iterated_power: How many rounds the randomized solver makes.
random_state: The seed of the randomized solver.
loss: A loss, or its name.
optimizer: An optimizer, or its name.
metric: A metric, or its name.
start_divisor: The rate starts at the peak divided by this.
boundaries: The numbers of updates at which the rate changes.
rates: The rates, one more than boundaries.
state: Plain data: dicts, lists, numbers, texts.
epochs: One value for each epoch.
function: The function.
total: The bytes that the device has.
fn: The function.
args: The arguments.
images: The images, from 0 to 1.
labels: The digits.
names: The names.
settings: Further settings, by name.
parts: The modules and functions, in their order.
world_size: The number of processes that the program needs.
timeout: The time in seconds after which it gives up.
strict: Whether a device that is not there is an error.
condition: Where it is true the first choice is taken.
""".strip().splitlines()
_MEANINGS: dict[str, str] = {name: meaning for name, _, meaning in (line.partition(": ") for line in _SHARED)}


def describe_parameters(thing: Any, signature: inspect.Signature) -> list[tuple[inspect.Parameter, str]]:
    """Return the parameters of a function or class with what each means."""
    return [
        (parameter, find_meaning(thing, parameter.name))
        for parameter in signature.parameters.values()
        if parameter.name not in ("self", "cls")
    ]


def find_meaning(thing: Any, name: str) -> str:
    """Return what a parameter means, or "" where nothing says it."""
    own = read(thing)
    if name in own.arguments:
        return own.arguments[name]
    first, others = _find_sentences(own.body, name)
    if others and name not in ("x", "y"):
        return others[0]
    for relative in _find_relatives(thing):
        if name in (arguments := read(relative).arguments):
            return arguments[name]
    return _MEANINGS.get(name) or first


def _find_sentences(body: str, name: str) -> tuple[str, list[str]]:
    """Return the sentences of the prose that name a parameter: the first of all, which says what is computed, apart."""
    prose = re.sub(r"^>>>.*?(?:\n\n|\Z)", "", body, flags=re.DOTALL | re.MULTILINE)
    sentences = re.split(r"(?<=[.;:])\s+(?=[A-Z`])", prose.replace("\n", " "))
    named = [re.search(rf"``{name}(?:``|=)", sentence) is not None for sentence in sentences]
    shown = [sentence.strip().rstrip(";:") for sentence in sentences]
    return shown[0] if named[0] else "", [text for text, is_named in zip(shown[1:], named[1:], strict=True) if is_named]


def _find_relatives(thing: Any) -> list[Any]:
    """Return the base classes, then the other public things of the same module: Conv2d is explained as Conv1d is."""
    module = sys.modules.get(getattr(thing, "__module__", ""))
    bases = [base for base in getattr(thing, "__mro__", ())[1:] if base.__module__.startswith("ember_ml")]
    public = [getattr(module, name) for name in getattr(module, "__all__", ())] if module else []
    return [*bases, *(other for other in public if inspect.isclass(other) == inspect.isclass(thing))]


def show_parameters(thing: Any, signature: inspect.Signature, path: str) -> str:
    """Return the table of the parameters as Markdown, or "" where there are none."""
    rows = []
    for parameter, meaning in describe_parameters(thing, signature):
        default = "" if parameter.default is inspect.Parameter.empty else f"`{_write(parameter.default)}`"
        star = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        text = to_markdown(meaning, path)
        rows.append((f"`{star}{parameter.name}`", link_types(parameter.annotation, path), default, text))
    return table(("parameter", "type", "default", "meaning"), rows) if rows else ""


def _write(value: Any) -> str:
    return value.__name__ if inspect.isroutine(value) or inspect.isclass(value) else repr(value)
