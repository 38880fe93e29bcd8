"""Every reference, collected."""

from tests.reference import elementwise, gathering, shaping, statistics  # noqa: F401
from tests.reference.spec import SPECS

__all__ = ["SPECS"]
