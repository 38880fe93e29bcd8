"""Say what a name of another library is called here: for the errors of missing names, and for the pages that compare.

Each row is the other library's name, ours, and where it matters what differs. Names that are the same have no row.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import NamedTuple

__all__ = ["BACKENDS", "LIBRARIES", "Row", "explain", "rows"]

BACKENDS: dict[str, str] = {"pytorch": "torch", "np": "numpy", "mx": "mlx", "apple": "mlx", "jnp": "jax"}
"""What people call a backend, and its name here."""

_PYTORCH = """
torch.tensor                      ops.array                         floats are float32, integers int64
torch.as_tensor                   ops.asarray
torch.from_numpy                  ops.asarray
torch.Tensor                      ember_ml.EmberTensor
torch.cat                         ops.concatenate                   axis=, as everywhere, in place of dim=
torch.unsqueeze                   ops.expand_dims
torch.permute                     ops.transpose                     the order of the axes is one tuple
torch.movedim                     ops.moveaxis
torch.unbind                      ops.unstack
torch.chunk                       ops.array_split
torch.Tensor.expand               ops.broadcast_to
torch.Tensor.repeat               ops.tile                          ops.repeat repeats each element
torch.repeat_interleave           ops.repeat
torch.narrow                      ops.slice                         a box: the start of each axis, and a shape
torch.index_select                ops.take
torch.gather                      ops.take_along_axis
torch.Tensor.scatter_             ops.put_along_axis
torch.Tensor.masked_fill          ops.where                         ops.where(mask, value, x)
torch.masked_select               ops.get_item                      ops.get_item(x, mask)
torch.topk                        ops.top_k
torch.kthvalue                    ops.sort
torch.clamp                       ops.clip
torch.neg                         ops.negative
torch.sub                         ops.subtract
torch.mul                         ops.multiply
torch.div                         ops.divide
torch.eq                          ops.equal
torch.ne                          ops.not_equal
torch.lt                          ops.less
torch.le                          ops.less_equal
torch.gt                          ops.greater
torch.ge                          ops.greater_equal
torch.mm                          ops.matmul
torch.bmm                         ops.matmul
torch.mv                          ops.matmul
torch.numel                       ops.size
torch.bucketize                   ops.searchsorted
torch.histc                       ops.histogram
torch.diag_embed                  ops.diag
torch.special.expit               ops.sigmoid
torch.randn                       ops.random.normal                 the shape is one argument
torch.rand                        ops.random.uniform                the shape is one argument
torch.randperm                    ops.random.permutation
torch.bernoulli                   ops.random.bernoulli
torch.multinomial                 ops.random.categorical            it takes logits
torch.manual_seed                 ops.random.seed
torch.no_grad                     ops.stop_gradient                 nothing is recorded outside grad and requires_grad
torch.Tensor.detach               ops.stop_gradient
torch.Tensor.to                   ops.to_device                     dtypes: ops.cast(x, dtype)
torch.Tensor.cuda                 ops.to_device                     ops.to_device(x, "cuda")
torch.Tensor.numpy                ops.to_numpy
torch.Tensor.contiguous           ops.copy                          no op needs it: the order in memory is the library's
torch.autograd.grad               ember_ml.grad                     a function of a function: ember_ml.grad(f)(x)
torch.func.functional_call        nn.value_and_grad                 parameters are found in the module
torch.jit                         ember_ml.compile
torch.utils.checkpoint            ember_ml.checkpoint
torch.utils.data.DataLoader       training.DataLoader
torch.nn.functional               ember_ml.ops                      functions of tensors are all in ops
torch.nn.functional.conv2d        ops.conv                          channels come last; the rank is that of the kernel
torch.nn.functional.conv1d        ops.conv                          channels come last; the rank is that of the kernel
torch.nn.functional.max_pool2d    ops.max_pool                      channels come last
torch.nn.functional.avg_pool2d    ops.average_pool                  channels come last
torch.nn.functional.layer_norm    ops.layer_normalization
torch.nn.functional.batch_norm    ops.batch_normalization           channels come last
torch.nn.functional.group_norm    ops.group_normalization           channels come last
torch.nn.functional.embedding     ops.take                          ops.take(weight, indices, axis=0)
torch.nn.functional.cross_entropy  ops.sparse_categorical_crossentropy  the target first; from_logits=True; no mean
torch.nn.functional.nll_loss      ops.sparse_categorical_crossentropy  the target comes first
torch.nn.functional.mse_loss      ops.mean_squared_error            the target comes first
torch.nn.functional.l1_loss       ops.mean_absolute_error           the target comes first
torch.nn.functional.binary_cross_entropy_with_logits  ops.binary_crossentropy  the target comes first; from_logits=True
torch.nn.functional.smooth_l1_loss  ops.huber_loss                  the target comes first
torch.nn.functional.kl_div        ops.kl_divergence                 the target comes first
torch.nn.functional.scaled_dot_product_attention  ops.dot_product_attention  (batch, length, heads, width)
torch.nn.functional.logsigmoid    ops.log_sigmoid
torch.nn.functional.hardswish     ops.hard_silu
torch.nn.functional.interpolate   ops.resize                        channels come last; mode is interpolation
torch.nn.functional.grid_sample   ops.map_coordinates               coordinates count elements
torch.nn.functional.unfold        ops.extract_patches               channels come last
torch.nn.BatchNorm1d              nn.BatchNorm                      for any number of axes; channels come last
torch.nn.BatchNorm2d              nn.BatchNorm                      for any number of axes; channels come last
torch.nn.BatchNorm3d              nn.BatchNorm                      for any number of axes; channels come last
torch.nn.InstanceNorm2d           nn.InstanceNorm                   for any number of axes; channels come last
torch.nn.Hardswish                nn.HardSiLU
torch.nn.Hardtanh                 nn.HardTanh
torch.nn.Hardsigmoid              nn.HardSigmoid
torch.nn.MultiheadAttention       nn.Attention                      nn.CrossAttention where keys come from elsewhere
torch.nn.TransformerEncoderLayer  nn.blocks.TransformerBlock
torch.nn.TransformerEncoder       nn.blocks.Transformer
torch.nn.ModuleList               nn.Module  a plain list as an attribute: modules are found in it
torch.nn.ModuleDict               nn.Module  a plain dict as an attribute: modules are found in it
torch.nn.ParameterList            nn.Module  a plain list as an attribute: parameters are found in it
torch.nn.Unflatten                nn.Reshape
torch.nn.Dropout2d                nn.Dropout
torch.nn.init                     nn.initializers
torch.nn.CrossEntropyLoss         training.losses.SparseCategoricalCrossentropy  the target comes first
torch.nn.BCEWithLogitsLoss        training.losses.BinaryCrossentropy  the target comes first
torch.nn.BCELoss                  training.losses.BinaryCrossentropy  the target comes first; from_logits=False
torch.nn.MSELoss                  training.losses.MeanSquaredError  the target comes first
torch.nn.L1Loss                   training.losses.MeanAbsoluteError  the target comes first
torch.nn.SmoothL1Loss             training.losses.Huber             the target comes first
torch.nn.HuberLoss                training.losses.Huber             the target comes first
torch.nn.KLDivLoss                training.losses.KLDivergence      the target comes first
torch.nn.CTCLoss                  training.losses.CTC               the target comes first
torch.optim                       training.optimizers
torch.optim.lr_scheduler          training.schedules                a schedule is the learning rate of an optimizer
torch.optim.lr_scheduler.StepLR   training.schedules.StepDecay
torch.optim.lr_scheduler.CosineAnnealingLR  training.schedules.Cosine
torch.optim.lr_scheduler.OneCycleLR  training.schedules.OneCycle
torch.nn.utils.clip_grad_norm_    training.optimizers.clip_by_norm  or max_norm= of an optimizer
torch.save                        ops.save                          models: model.save(path); runs: trainer.save(folder)
torch.distributed                 ember_ml.distributed
torch.nn.parallel.DistributedDataParallel  distributed.strategy.DataParallelStrategy
torch.distributed.fsdp.fully_shard  distributed.strategy.FullShardStrategy
"""

_KERAS = """
keras.layers.Dense                nn.Linear  one size is enough: nn.Linear(10); activations follow it
keras.layers.Conv2D               nn.Conv2d                         channels come last in both
keras.layers.Conv1D               nn.Conv1d
keras.layers.Conv2DTranspose      nn.ConvTranspose2d
keras.layers.DepthwiseConv2D      nn.DepthwiseConv2d
keras.layers.SeparableConv2D      nn.SeparableConv2d
keras.layers.MaxPooling2D         nn.MaxPool2d
keras.layers.AveragePooling2D     nn.AvgPool2d
keras.layers.GlobalAveragePooling2D  nn.GlobalAvgPool
keras.layers.GlobalMaxPooling2D   nn.GlobalMaxPool
keras.layers.BatchNormalization   nn.BatchNorm  momentum is the weight of the new batch: 0.1, not 0.9
keras.layers.LayerNormalization   nn.LayerNorm
keras.layers.GroupNormalization   nn.GroupNorm
keras.layers.RMSNormalization     nn.RMSNorm
keras.layers.MultiHeadAttention   nn.Attention                      nn.CrossAttention where keys come from elsewhere
keras.layers.SimpleRNN            nn.RNN                            every position is returned
keras.layers.Activation           nn.ReLU  each activation is a layer; in Sequential a function will do
keras.layers.Masking              nn.Mask
keras.layers.Input                nn.Sequential                     sizes that are left out are those of the first input
keras.Model                       nn.Module                         write forward in place of call
keras.layers.Layer                nn.Module                         write forward in place of call
keras.Model.compile               training.Trainer                  Trainer(model, optimizer, loss, metrics=[...])
keras.Model.fit                   training.Trainer                  trainer.fit(x, y, epochs=5)
keras.initializers                nn.initializers
keras.losses                      training.losses                   those of classes take logits
keras.metrics                     training.metrics
keras.optimizers                  training.optimizers
keras.optimizers.schedules        training.schedules
keras.optimizers.schedules.ExponentialDecay  training.schedules.Exponential
keras.optimizers.schedules.CosineDecay  training.schedules.Cosine
keras.callbacks                   training.callbacks
keras.callbacks.ModelCheckpoint   training.callbacks.Checkpoint
keras.callbacks.CSVLogger         training.callbacks.CSVLog
keras.callbacks.TerminateOnNaN    training.callbacks.StopOnNaN
keras.callbacks.LambdaCallback    training.callbacks.OnEpoch
keras.metrics.SparseCategoricalAccuracy  training.metrics.Accuracy
keras.metrics.F1Score             training.metrics.F1
keras.utils.set_random_seed       ops.random.seed
keras.utils.to_categorical        ops.one_hot
keras.config.set_backend          ember_ml.set_backend              at any time, also in the middle of a run
keras.ops.convert_to_numpy        ops.to_numpy
keras.ops.extract_sequences       ops.frame
keras.ops.image                   ops.image
keras.layers.RandomColorJitter    nn.ColorJitter
keras.layers.RandomBrightness     nn.ColorJitter                    brightness=
keras.layers.RandomContrast       nn.ColorJitter                    contrast=
keras.layers.Resizing             ops.resize
keras.layers.CenterCrop           ops.center_crop
keras.saving.register_keras_serializable  ember_ml.registry.register
"""

_JAX = """
jax.numpy                         ember_ml.ops
jax.jit                           ember_ml.compile
jax.grad                          ember_ml.grad
jax.jacrev                        ember_ml.jacobian
jax.jacfwd                        ember_ml.jacobian
jax.custom_vjp                    ember_ml.custom_gradient  one function returns the result and its backward function
jax.lax.stop_gradient             ops.stop_gradient
jax.lax.cond                      ops.cond
jax.lax.scan                      ops.scan
jax.lax.map                       ops.map
jax.lax.rsqrt                     ops.rsqrt
jax.lax.dynamic_slice             ops.slice
jax.lax.dynamic_update_slice      ops.slice_update
jax.lax.top_k                     ops.top_k
jax.lax.conv_general_dilated      ops.conv                          channels come last
jax.random.PRNGKey                ops.random.Generator              seed= takes an integer or a Generator
jax.random.key                    ops.random.Generator              seed= takes an integer or a Generator
jax.random.split                  ops.random.Generator              a Generator goes on from call to call
jax.random.normal                 ops.random.normal                 seed= in place of the key, and last
jax.random.randint                ops.random.integers
jax.nn.logsumexp                  ops.logsumexp
jax.image.resize                  ops.resize                        the size, and not the whole shape
jax.image.scale_and_translate     ops.scale_and_translate
jax.scipy.ndimage.map_coordinates  ops.map_coordinates
jax.nn.dot_product_attention      ops.dot_product_attention
jax.nn.initializers               nn.initializers
jax.ops.segment_sum               ops.segment_sum
jax.device_put                    ops.to_device
jax.block_until_ready             ops.synchronize
jax.checkpoint                    ember_ml.checkpoint
jax.numpy.ndarray.at              ops.index_update  ops.index_update(x, key, value); x[key] = v on EmberTensor
jax.lax.associative_scan          ops.associative_scan
jax.experimental.ode.odeint       ops.odeint
jax.scipy.special.xlogy           ops.xlogy
"""

_NUMPY = """
numpy.ndarray                     ember_ml.EmberTensor
numpy.trapz                       ops.trapezoid
numpy.random.randn                ops.random.normal                 the shape is one argument
numpy.random.rand                 ops.random.uniform                the shape is one argument
numpy.random.default_rng          ops.random.Generator
numpy.random.shuffle              ops.random.shuffle                returns the shuffled tensor
numpy.random.randint              ops.random.integers
numpy.linalg                      ops.linearalg
numpy.linalg.multi_dot            ops.matmul
numpy.atleast_1d                  ops.reshape
numpy.rollaxis                    ops.moveaxis
numpy.divmod                      ops.floor_divide                  and ops.mod
numpy.put                         ops.index_update
numpy.invert                      ops.bitwise_not
numpy.left_shift                  ops.bitwise_left_shift
numpy.right_shift                 ops.bitwise_right_shift
numpy.degrees                     ops.rad2deg
numpy.radians                     ops.deg2rad
numpy.float_power                 ops.power
numpy.rint                        ops.round
numpy.fix                         ops.trunc
numpy.in1d                        ops.isin
numpy.ndarray.astype              ops.cast
numpy.ndarray.item                ops.item
numpy.asarray                     ops.to_numpy                      of a tensor; of data: ops.asarray
numpy.save                        ops.save                          safetensors, not pickle
"""

_MLX = """
mlx.core.array                    ops.array
mlx.core.eval                     ops.synchronize                   values are computed when they are read
mlx.core.addmm                    ops.matmul
mlx.core.topk                     ops.top_k                         sorted; the values, then the indices
mlx.core.random.key               ops.random.Generator              seed= takes an integer or a Generator
mlx.core.random.randint           ops.random.integers
mlx.core.fast.layer_norm          ops.layer_normalization
mlx.core.fast.rms_norm            ops.rms_normalization
mlx.core.fast.rope                ops.rotary_embedding
mlx.core.fast.scaled_dot_product_attention  ops.dot_product_attention  (batch, length, heads, width)
mlx.core.conv2d                   ops.conv                          the rank is that of the kernel
mlx.core.conv_general             ops.conv
mlx.core.save_safetensors         ops.save
mlx.core.load                     ops.load
mlx.core.metal                    ember_ml.memory
mlx.core.get_active_memory        ember_ml.memory.statistics
mlx.core.set_default_device       ops.set_default_device
mlx.nn.MultiHeadAttention         nn.Attention                      nn.CrossAttention where keys come from elsewhere
mlx.nn.TransformerEncoder         nn.blocks.Transformer
mlx.nn.value_and_grad             nn.value_and_grad                 gradients are a flat dict by name
mlx.nn.losses                     training.losses                   the target comes first
mlx.nn.losses.cross_entropy       ops.sparse_categorical_crossentropy  the target comes first; from_logits=True, no mean
mlx.nn.losses.mse_loss            ops.mean_squared_error            the target comes first
mlx.nn.init                       nn.initializers
mlx.optimizers                    training.optimizers
mlx.optimizers.cosine_decay       training.schedules.Cosine
mlx.optimizers.step_decay         training.schedules.StepDecay
mlx.optimizers.clip_grad_norm     training.optimizers.clip_by_norm
mlx.utils.tree_flatten            nn.Module                         model.state_dict() is flat
"""

LIBRARIES: dict[str, str] = {"PyTorch": _PYTORCH, "Keras": _KERAS, "JAX": _JAX, "NumPy": _NUMPY, "MLX": _MLX}
"""The table of each library, as text."""

_HOMES = {
    "ops": "ember_ml.ops",
    "nn": "ember_ml.nn",
    "nn.blocks": "ember_ml.nn.blocks",
    "training": "ember_ml.training",
    "training.optimizers": "ember_ml.training.optimizers",
    "training.losses": "ember_ml.training.losses",
    "training.metrics": "ember_ml.training.metrics",
    "training.schedules": "ember_ml.training.schedules",
    "training.callbacks": "ember_ml.training.callbacks",
    "ember_ml": "ember_ml",
}
"""Where a public name may be, by how programs write it."""


class Row(NamedTuple):
    """A name of another library and ours; ``note`` says what differs."""

    theirs: str
    ours: str
    note: str


@cache
def rows(library: str) -> tuple[Row, ...]:
    """Return the rows of a library, such as "PyTorch"."""
    lines = LIBRARIES[library].strip().splitlines()
    return tuple(Row(*(*re.split(r"\s{2,}", line, maxsplit=2), "")[:3]) for line in lines)


def explain(package: str, name: str) -> str:
    """Return what to write for a name that a package of ours does not have, or "" where nobody knows.

    >>> from ember_ml.core.other_names import explain
    >>> explain("ember_ml.nn", "Dense")
    'keras.layers.Dense is nn.Linear here (one size is enough: nn.Linear(10); activations follow it)'
    >>> explain("ember_ml.training", "AdamW")
    'it is training.optimizers.AdamW'
    """
    for home, module in _HOMES.items():
        if module != package and name in import_module(module).__all__:
            return f"it is {home}.{name}"
    found = [row for library in LIBRARIES for row in rows(library) if row.theirs.rpartition(".")[2] == name]
    if not found:
        return ""
    row = min(found, key=lambda row: not f"ember_ml.{row.ours}".startswith(f"{package}."))  # those of the package first
    return f"{row.theirs} is {row.ours} here" + (f" ({row.note})" if row.note else "")
