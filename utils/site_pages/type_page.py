"""The page of the types that annotate parameters and results."""

from __future__ import annotations

__all__ = ["PATH", "TYPES", "write_page"]

PATH = "reference/types.md"
TYPES = {
    "Tensor": "Any tensor: an `EmberTensor`, or a backend's own: `np.ndarray`, `torch.Tensor`, `mx.array`. "
    "`isinstance(x, Tensor)` asks what `ops.is_tensor` asks.",
    "TensorLike": "What ops take: a tensor of any backend, a NumPy array, a Python number, nested lists of numbers, "
    "anything that NumPy can read.",
    "TensorTypes": "Anything, for annotations of what may be a tensor of a library that is not known.",
    "DataLike": "A `TensorLike` whose Python numbers take the dtype that is asked for.",
    "IndexLike": "A `TensorLike` of integers that name elements. It is not promoted together with other arguments.",
    "MaskLike": "A `TensorLike` of bools, or of numbers where the description says so.",
    "KeyLike": "What may stand between the brackets of `x[...]`: integers, slices, `None`, `...`, masks, lists "
    "and tensors of integers, and tuples of those.",
    "ValueLike": "What may be stored into a tensor, which keeps its own dtype: "
    "values that it cannot hold raise `TypeError`.",
    "AxisLike": "An integer or a tuple of integers; negative ones count from the last axis.",
    "Shape": "A sequence of integers.",
    "ShapeLike": "An integer, for one dimension, or a sequence of integers.",
    "DTypeLike": 'A dtype of `ember_ml.dtypes`, its name (`"float32"`), a Python type (`float`), '
    "or any library's dtype.",
    "DeviceLike": 'The name of a device: `"cpu"`, `"cuda"`, `"cuda:1"`, `"mps"`, `"gpu"`.',
    "SeedLike": "An integer from 0 to 2**64 - 1, which gives the same numbers at every call, "
    "or a `Generator`, which goes on.",
    "Numeric": "A Python number: `int` or `float`.",
    "Tree": "A tensor, or nested dicts, lists and tuples of tensors; None stays None.",
}


def write_page() -> str:
    """Return the text of the page."""
    parts = [
        "# Types",
        "The names in signatures; most are in `ember_ml.typing`, for annotations of your own.",
    ]
    for name, meaning in TYPES.items():
        parts += [f"## {name}", meaning]
    return "\n\n".join(parts) + "\n"
