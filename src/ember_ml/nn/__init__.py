"""Neural networks and the portable tensors that they compute with."""

from ember_ml import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "Buffer": "ember_ml.nn.modules.parameter:Buffer",
        "Model": "ember_ml.nn.model:Model",
        "Module": "ember_ml.nn.modules.module:Module",
        "Parameter": "ember_ml.nn.modules.parameter:Parameter",
        "Sequential": "ember_ml.nn.modules.sequential:Sequential",
        "blocks": "ember_ml.nn.blocks",
        "deferred": "ember_ml.nn.layers.base:deferred",
        "empty": "ember_ml.nn.layers.base:empty",
        "features": "ember_ml.nn.features",
        "generate": "ember_ml.nn.generation:generate",
        "initializers": "ember_ml.nn.initializers",
        "layers": "ember_ml.nn.layers",
        "modules": "ember_ml.nn.modules",
        "tensor": "ember_ml.nn.tensor",
        "value_and_grad": "ember_ml.nn.gradients:value_and_grad",
    },
    # every layer and activation is also a name of this package
    whole=(
        "ember_ml.nn.layers.augmentation",
        "ember_ml.nn.layers.channel_mixing",
        "ember_ml.nn.layers.sequence_mixing",
        "ember_ml.nn.modules.activations",
    ),
)
