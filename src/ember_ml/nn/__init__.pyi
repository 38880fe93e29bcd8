# Written by utils/make_tables.py: the public names, for editors and type checkers.

from ember_ml.nn import blocks as blocks
from ember_ml.nn import features as features
from ember_ml.nn import initializers as initializers
from ember_ml.nn import layers as layers
from ember_ml.nn import modules as modules
from ember_ml.nn import tensor as tensor
from ember_ml.nn.generation import generate as generate
from ember_ml.nn.gradients import value_and_grad as value_and_grad
from ember_ml.nn.layers.augmentation.colour import ColorJitter as ColorJitter
from ember_ml.nn.layers.augmentation.erasing import RandomErasing as RandomErasing
from ember_ml.nn.layers.augmentation.erasing import SpecAugment as SpecAugment
from ember_ml.nn.layers.augmentation.geometry import RandomCrop as RandomCrop
from ember_ml.nn.layers.augmentation.geometry import RandomFlip as RandomFlip
from ember_ml.nn.layers.augmentation.geometry import RandomResizedCrop as RandomResizedCrop
from ember_ml.nn.layers.augmentation.geometry import RandomRotation as RandomRotation
from ember_ml.nn.layers.augmentation.mixing import CutMix as CutMix
from ember_ml.nn.layers.augmentation.mixing import MixUp as MixUp
from ember_ml.nn.layers.base import deferred as deferred
from ember_ml.nn.layers.base import empty as empty
from ember_ml.nn.layers.channel_mixing.base import ChannelMixingLayer as ChannelMixingLayer
from ember_ml.nn.layers.channel_mixing.convolution import Conv1d as Conv1d
from ember_ml.nn.layers.channel_mixing.convolution import Conv2d as Conv2d
from ember_ml.nn.layers.channel_mixing.convolution import Conv3d as Conv3d
from ember_ml.nn.layers.channel_mixing.convolution import ConvTranspose1d as ConvTranspose1d
from ember_ml.nn.layers.channel_mixing.convolution import ConvTranspose2d as ConvTranspose2d
from ember_ml.nn.layers.channel_mixing.convolution import ConvTranspose3d as ConvTranspose3d
from ember_ml.nn.layers.channel_mixing.dropout import Dropout as Dropout
from ember_ml.nn.layers.channel_mixing.embedding import Embedding as Embedding
from ember_ml.nn.layers.channel_mixing.linear import Linear as Linear
from ember_ml.nn.layers.channel_mixing.mixture import MixtureOfExperts as MixtureOfExperts
from ember_ml.nn.layers.channel_mixing.mlp import GEGLU as GEGLU
from ember_ml.nn.layers.channel_mixing.mlp import MLP as MLP
from ember_ml.nn.layers.channel_mixing.mlp import GatedMLP as GatedMLP
from ember_ml.nn.layers.channel_mixing.mlp import SwiGLU as SwiGLU
from ember_ml.nn.layers.channel_mixing.normalization import BatchNorm as BatchNorm
from ember_ml.nn.layers.channel_mixing.normalization import GroupNorm as GroupNorm
from ember_ml.nn.layers.channel_mixing.normalization import InstanceNorm as InstanceNorm
from ember_ml.nn.layers.channel_mixing.normalization import LayerNorm as LayerNorm
from ember_ml.nn.layers.channel_mixing.normalization import RMSNorm as RMSNorm
from ember_ml.nn.layers.channel_mixing.pooling import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from ember_ml.nn.layers.channel_mixing.pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from ember_ml.nn.layers.channel_mixing.pooling import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from ember_ml.nn.layers.channel_mixing.pooling import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from ember_ml.nn.layers.channel_mixing.pooling import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from ember_ml.nn.layers.channel_mixing.pooling import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from ember_ml.nn.layers.channel_mixing.pooling import AvgPool1d as AvgPool1d
from ember_ml.nn.layers.channel_mixing.pooling import AvgPool2d as AvgPool2d
from ember_ml.nn.layers.channel_mixing.pooling import AvgPool3d as AvgPool3d
from ember_ml.nn.layers.channel_mixing.pooling import GlobalAvgPool as GlobalAvgPool
from ember_ml.nn.layers.channel_mixing.pooling import GlobalMaxPool as GlobalMaxPool
from ember_ml.nn.layers.channel_mixing.pooling import MaxPool1d as MaxPool1d
from ember_ml.nn.layers.channel_mixing.pooling import MaxPool2d as MaxPool2d
from ember_ml.nn.layers.channel_mixing.pooling import MaxPool3d as MaxPool3d
from ember_ml.nn.layers.channel_mixing.separable import DepthwiseConv1d as DepthwiseConv1d
from ember_ml.nn.layers.channel_mixing.separable import DepthwiseConv2d as DepthwiseConv2d
from ember_ml.nn.layers.channel_mixing.separable import DepthwiseConv3d as DepthwiseConv3d
from ember_ml.nn.layers.channel_mixing.separable import SeparableConv1d as SeparableConv1d
from ember_ml.nn.layers.channel_mixing.separable import SeparableConv2d as SeparableConv2d
from ember_ml.nn.layers.channel_mixing.separable import SeparableConv3d as SeparableConv3d
from ember_ml.nn.layers.channel_mixing.shaping import Flatten as Flatten
from ember_ml.nn.layers.channel_mixing.shaping import Identity as Identity
from ember_ml.nn.layers.channel_mixing.shaping import Mask as Mask
from ember_ml.nn.layers.channel_mixing.shaping import Reshape as Reshape
from ember_ml.nn.layers.sequence_mixing.attention import Attention as Attention
from ember_ml.nn.layers.sequence_mixing.attention import CrossAttention as CrossAttention
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixingLayer as SequenceMixingLayer
from ember_ml.nn.layers.sequence_mixing.continuous import CFC as CFC
from ember_ml.nn.layers.sequence_mixing.convolution import CausalConv1d as CausalConv1d
from ember_ml.nn.layers.sequence_mixing.grouped_query import GroupedQueryAttention as GroupedQueryAttention
from ember_ml.nn.layers.sequence_mixing.linear_attention import LinearAttention as LinearAttention
from ember_ml.nn.layers.sequence_mixing.recurrent import GRU as GRU
from ember_ml.nn.layers.sequence_mixing.recurrent import LSTM as LSTM
from ember_ml.nn.layers.sequence_mixing.recurrent import RNN as RNN
from ember_ml.nn.layers.sequence_mixing.state_space import StateSpace as StateSpace
from ember_ml.nn.model import Model as Model
from ember_ml.nn.modules.activations import Swish as Swish
from ember_ml.nn.modules.activations.classes import CELU as CELU
from ember_ml.nn.modules.activations.classes import ELU as ELU
from ember_ml.nn.modules.activations.classes import GELU as GELU
from ember_ml.nn.modules.activations.classes import GLU as GLU
from ember_ml.nn.modules.activations.classes import SELU as SELU
from ember_ml.nn.modules.activations.classes import HardShrink as HardShrink
from ember_ml.nn.modules.activations.classes import HardSigmoid as HardSigmoid
from ember_ml.nn.modules.activations.classes import HardSiLU as HardSiLU
from ember_ml.nn.modules.activations.classes import HardTanh as HardTanh
from ember_ml.nn.modules.activations.classes import LeakyReLU as LeakyReLU
from ember_ml.nn.modules.activations.classes import LogSigmoid as LogSigmoid
from ember_ml.nn.modules.activations.classes import LogSoftmax as LogSoftmax
from ember_ml.nn.modules.activations.classes import Mish as Mish
from ember_ml.nn.modules.activations.classes import PReLU as PReLU
from ember_ml.nn.modules.activations.classes import ReLU6 as ReLU6
from ember_ml.nn.modules.activations.classes import SiLU as SiLU
from ember_ml.nn.modules.activations.classes import SoftShrink as SoftShrink
from ember_ml.nn.modules.activations.classes import Softsign as Softsign
from ember_ml.nn.modules.activations.classes import Sparsemax as Sparsemax
from ember_ml.nn.modules.activations.classes import Squareplus as Squareplus
from ember_ml.nn.modules.activations.classes import TanhShrink as TanhShrink
from ember_ml.nn.modules.activations.classes import Threshold as Threshold
from ember_ml.nn.modules.activations.relu_module import ReLU as ReLU
from ember_ml.nn.modules.activations.sigmoid_module import Sigmoid as Sigmoid
from ember_ml.nn.modules.activations.softmax_module import Softmax as Softmax
from ember_ml.nn.modules.activations.softplus_module import Softplus as Softplus
from ember_ml.nn.modules.activations.tanh_module import Tanh as Tanh
from ember_ml.nn.modules.module import Module as Module
from ember_ml.nn.modules.parameter import Buffer as Buffer
from ember_ml.nn.modules.parameter import Parameter as Parameter
from ember_ml.nn.modules.sequential import Sequential as Sequential
from ember_ml.ops.elementwise.trigonometry import tanh as tanh
from ember_ml.ops.neural.activations import celu as celu
from ember_ml.ops.neural.activations import elu as elu
from ember_ml.ops.neural.activations import gelu as gelu
from ember_ml.ops.neural.activations import glu as glu
from ember_ml.ops.neural.activations import hard_shrink as hard_shrink
from ember_ml.ops.neural.activations import hard_sigmoid as hard_sigmoid
from ember_ml.ops.neural.activations import hard_silu as hard_silu
from ember_ml.ops.neural.activations import hard_tanh as hard_tanh
from ember_ml.ops.neural.activations import leaky_relu as leaky_relu
from ember_ml.ops.neural.activations import log_sigmoid as log_sigmoid
from ember_ml.ops.neural.activations import log_softmax as log_softmax
from ember_ml.ops.neural.activations import mish as mish
from ember_ml.ops.neural.activations import prelu as prelu
from ember_ml.ops.neural.activations import relu as relu
from ember_ml.ops.neural.activations import relu6 as relu6
from ember_ml.ops.neural.activations import selu as selu
from ember_ml.ops.neural.activations import sigmoid as sigmoid
from ember_ml.ops.neural.activations import silu as silu
from ember_ml.ops.neural.activations import soft_shrink as soft_shrink
from ember_ml.ops.neural.activations import softmax as softmax
from ember_ml.ops.neural.activations import softplus as softplus
from ember_ml.ops.neural.activations import softsign as softsign
from ember_ml.ops.neural.activations import sparsemax as sparsemax
from ember_ml.ops.neural.activations import squareplus as squareplus
from ember_ml.ops.neural.activations import swish as swish
from ember_ml.ops.neural.activations import tanh_shrink as tanh_shrink
from ember_ml.ops.neural.activations import threshold as threshold

__all__ = [
    "CELU",
    "CFC",
    "ELU",
    "GEGLU",
    "GELU",
    "GLU",
    "GRU",
    "LSTM",
    "MLP",
    "RNN",
    "SELU",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "Attention",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "BatchNorm",
    "Buffer",
    "CausalConv1d",
    "ChannelMixingLayer",
    "ColorJitter",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "CrossAttention",
    "CutMix",
    "DepthwiseConv1d",
    "DepthwiseConv2d",
    "DepthwiseConv3d",
    "Dropout",
    "Embedding",
    "Flatten",
    "GatedMLP",
    "GlobalAvgPool",
    "GlobalMaxPool",
    "GroupNorm",
    "GroupedQueryAttention",
    "HardShrink",
    "HardSiLU",
    "HardSigmoid",
    "HardTanh",
    "Identity",
    "InstanceNorm",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LinearAttention",
    "LogSigmoid",
    "LogSoftmax",
    "Mask",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "Mish",
    "MixUp",
    "MixtureOfExperts",
    "Model",
    "Module",
    "PReLU",
    "Parameter",
    "RMSNorm",
    "RandomCrop",
    "RandomErasing",
    "RandomFlip",
    "RandomResizedCrop",
    "RandomRotation",
    "ReLU",
    "ReLU6",
    "Reshape",
    "SeparableConv1d",
    "SeparableConv2d",
    "SeparableConv3d",
    "SequenceMixingLayer",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SoftShrink",
    "Softmax",
    "Softplus",
    "Softsign",
    "Sparsemax",
    "SpecAugment",
    "Squareplus",
    "StateSpace",
    "SwiGLU",
    "Swish",
    "Tanh",
    "TanhShrink",
    "Threshold",
    "blocks",
    "celu",
    "deferred",
    "elu",
    "empty",
    "features",
    "gelu",
    "generate",
    "glu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_tanh",
    "initializers",
    "layers",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "modules",
    "prelu",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_shrink",
    "softmax",
    "softplus",
    "softsign",
    "sparsemax",
    "squareplus",
    "swish",
    "tanh",
    "tanh_shrink",
    "tensor",
    "threshold",
    "value_and_grad",
]
