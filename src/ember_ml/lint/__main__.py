"""``python -m ember_ml.lint`` is ``emberlint``."""

import sys

from ember_ml.lint.cli import main

sys.exit(main())
