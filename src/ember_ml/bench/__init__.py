"""The benchmark that users can run: ``ember-ml bench``.

Ops beside native calls and Keras, conversions between backends, Python operators beside functions, loops beside whole
tensors, reading values beside keeping them.
"""
